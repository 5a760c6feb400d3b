"""Closed, strict record models and the sentences that say what is wrong with one."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from probebench.kernel.canonical import Json, encode
from probebench.kernel.errors import ConfigError


class ClosedModel(BaseModel):
    """No unknown fields, no conversions between types, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=ClosedModel)


def parse_config(model: type[Model], value: Json) -> Model:
    """Read a configuration as ``model``.

    Raises ConfigError with one sentence that names every faulty field by its
    path, the value where there is one, and what is expected there.
    """
    try:
        # JSON mode: arrays may be tuples, but "1" is no number and true no 1.
        return model.model_validate_json(encode(value))
    except ValidationError as error:
        raise ConfigError(config_sentence(error)) from None


def config_sentence(error: ValidationError) -> str:
    """One sentence for all that pydantic found."""
    parts = [_complaint(item) for item in error.errors(include_url=False)]
    return f"the configuration is not valid: {'; '.join(parts)}; correct the file"


def _complaint(item: Json) -> str:
    path = ".".join(str(part) for part in item["loc"]) or "(whole document)"
    if item["type"] == "extra_forbidden":
        return f"{path} is unknown"
    if item["type"] == "missing":
        return f"{path} is missing"
    message = item["msg"].removeprefix("Value error, ")
    given = item["input"]
    shown = f" (got {given!r:.80})" if not isinstance(given, (dict, list)) else ""
    return f"{path}: {message[:1].lower()}{message[1:]}{shown}"
