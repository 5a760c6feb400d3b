"""Read one line of a client as an action, or say which rule it breaks; pure.

docs/protocol.md has the table of all codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probebench.kernel.canonical import Json
from probebench.kernel.episode import Action
from probebench.kernel.errors import ActionRejectedError
from probebench.kernel.strictjson import parse_object, require_fields, require_number_vector
from probebench.wire import optical as wire

FIELDS = {name: set(model.model_fields) for name, model in wire.CLIENT_MESSAGES.items()}


@dataclass(frozen=True)
class Standing:
    """What the rules ask about the state of an episode.

    identifiers: of all requests so far, the current one last.
    """

    identifiers: Sequence[str]
    command_bound_nm: float
    has_estimator: bool
    estimates_left: int
    exposure_is_affordable: bool
    has_two_commands: bool

    def refusals(self) -> dict[str, tuple[str, str]]:
        """The actions that are unavailable now: code and sentence by name."""
        refused: dict[str, tuple[str, str]] = {}
        if not self.exposure_is_affordable:
            sentence = "all exposures are spent; estimate, where the track has it, or submit"
            refused["expose"] = ("exposure_budget", sentence)
        if not self.has_two_commands:
            sentence = (
                "the estimator needs images under two distinct commands; expose another command"
            )
            refused["estimate"] = ("estimator_precondition", sentence)
        if self.estimates_left < 1:
            refused["estimate"] = ("estimate_budget", "all estimates are spent; expose or submit")
        if not self.has_estimator:
            sentence = "this track has no estimator; expose or submit"
            refused["estimate"] = ("not_in_track", sentence)
        return refused

    def available(self) -> list[str]:
        """The actions that are not refused, in the order of the protocol."""
        refused = self.refusals()
        return [name for name in FIELDS if name not in refused]


def read_action(line: bytes, standing: Standing) -> Action:
    """Read a line, newline included.

    Raises ActionRejectedError for the first rule that it breaks, in the order:
    JSON, action, fields, protocol, identifier, command, availability.
    """
    message = parse_object(line)
    name = _name(message)
    require_fields(message, FIELDS[name])
    _require_envelope(message, standing.identifiers)
    fields: dict[str, Json] = {}
    if "command_opd_nm" in message:
        bound = standing.command_bound_nm
        command = message["command_opd_nm"]
        fields["command_opd_nm"] = require_number_vector(
            command, wire.MODES, -bound, bound, "command_opd_nm"
        )
    if name in (refused := standing.refusals()):
        raise ActionRejectedError(*refused[name])
    return Action(name, fields)


def _name(message: dict[str, Json]) -> str:
    if "action" not in message:
        raise ActionRejectedError("missing_field", "the field action is missing; add it")
    name = message["action"]
    if not isinstance(name, str):
        raise ActionRejectedError("wrong_type", "the field action must be a string; name an action")
    if name not in FIELDS:
        known = ", ".join(FIELDS)
        sentence = f"the action {name[:40]!r} is unknown; use one of {known}"
        raise ActionRejectedError("unknown_action", sentence)
    return name


def _require_envelope(message: dict[str, Json], identifiers: Sequence[str]) -> None:
    for field in ("protocol", "request_id"):
        if not isinstance(message[field], str):
            raise ActionRejectedError(
                "wrong_type", f"the field {field} must be a string; copy it from the last request"
            )
    if message["protocol"] != wire.PROTOCOL:
        raise ActionRejectedError(
            "wrong_protocol", f"the protocol is not {wire.PROTOCOL}; copy it from the last request"
        )
    identifier = message["request_id"]
    if identifier == identifiers[-1]:
        return
    advice = "copy the identifier of the last request"
    if identifier in identifiers:
        raise ActionRejectedError("stale_request_id", f"that request was answered; {advice}")
    raise ActionRejectedError("unknown_request_id", f"no request has that identifier; {advice}")
