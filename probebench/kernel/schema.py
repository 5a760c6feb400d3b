"""Closed, strict record models and the sentences that say what is wrong with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from probebench.kernel.canonical import Json, encode
from probebench.kernel.errors import ConfigError
from probebench.kernel.page import visible

MAX_COMPLAINTS = 40
MAX_KEY_CHARACTERS = 60


class ClosedModel(BaseModel):
    """No unknown fields, no conversions between types, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=ClosedModel)


def parse_config(model: type[Model], value: Json, hidden: Sequence[str] = ()) -> Model:
    """Read a configuration as ``model``.

    Raises ConfigError with one sentence that names every faulty field by its
    path, the value where there is one, and what is expected there.

    hidden: top-level fields whose values are never shown, for a client may
        read what the driver prints.
    """
    try:
        # JSON mode: arrays may be tuples, but "1" is no number and true no 1.
        return model.model_validate_json(encode(value))
    except ValidationError as error:
        raise ConfigError(config_sentence(error, hidden)) from None


def parse_record(model: type[Model], value: Json) -> Model:
    """Read a part of a saved record as ``model``.

    Raises ValueError with one sentence that names the first faulty field.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ValueError(_complaint(error.errors(include_url=False)[0], ())) from None


def config_sentence(error: ValidationError, hidden: Sequence[str] = ()) -> str:
    """One sentence for all that pydantic found."""
    errors = error.errors(include_url=False)
    parts = [_complaint(item, hidden) for item in errors[:MAX_COMPLAINTS]]
    if len(errors) > MAX_COMPLAINTS:
        parts.append(f"and {len(errors) - MAX_COMPLAINTS} more")
    return f"the configuration is not valid: {'; '.join(parts)}; correct the file"


def _complaint(item: Json, hidden: Sequence[str]) -> str:
    # A key may be anything, and what is printed is obeyed by terminals.
    path = ".".join(visible(str(part)[:MAX_KEY_CHARACTERS]) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{path} is unknown"
    if item["type"] == "missing":
        return f"{path} is missing"
    message = item["msg"].removeprefix("Value error, ")
    message = f"{message[:1].lower()}{message[1:]}"
    if not path:
        return message  # a check over several fields names them itself
    given = item["input"]
    secret = item["loc"][0] in hidden or isinstance(given, (dict, list))
    return f"{path}: {message}" if secret else f"{path}: {message} (got {given!r:.80})"
