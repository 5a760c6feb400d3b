"""What the turns of a recorded optical session say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from probebench.kernel.canonical import Json
from probebench.kernel.report import RecordedSession, RecordedTurn


@dataclass(frozen=True)
class ShownFit:
    """A fit as the client was shown it in a turn; cached where it had been saved before."""

    turn: int
    cached: bool
    fit: Json


def observations(session: RecordedSession) -> list[Json]:
    """The observation of every exposure, in order."""
    messages = [t.response["message"] for t in session.turns]
    return [
        session.first_message["observation"],
        *(message["observation"] for message in messages if acquired(message)),
    ]


def shown_fits(session: RecordedSession) -> list[ShownFit]:
    """Every fit that the client was shown, in order."""
    results = [(t.turn, t.response["message"].get("last_result")) for t in session.turns]
    return [
        ShownFit(turn, result["cached"], result["fit"])
        for turn, result in results
        if result is not None and result["kind"] == "estimated"
    ]


def mode_names(session: RecordedSession) -> list[str]:
    """The names of the modes, in the order of the coefficients."""
    return [mode["name"] for mode in session.first_message["instrument"]["modes"]]


def acquired(message: Json) -> bool:
    """Whether a message shows a new exposure."""
    result = message.get("last_result")
    return result is not None and result["kind"] == "exposed"


def last_message(session: RecordedSession) -> Json:
    """The last message that was published."""
    return session.turns[-1].response["message"] if session.turns else session.first_message


def action_of(turn: RecordedTurn) -> dict[str, Json]:
    """The action of a turn that was neither rejected nor a fault, else nothing."""
    if turn.fault is not None or turn.response["rejection"] or turn.received is None:
        return {}
    action: dict[str, Json] = json.loads(turn.received)
    return action


def peak_e(observation: Json) -> float:
    """The largest value of a frame, in electrons."""
    return float(max(map(max, observation["electrons"])))


def vector_text(values: Sequence[float]) -> str:
    """Six coefficients in at most 35 columns: tenths of a nm, whole ones from 100 nm."""
    return " ".join(_short(value) for value in values)


def _short(value: float) -> str:
    rounded = f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
    short = rounded.removesuffix(".0")
    return "0" if short == "-0" else short
