"""The transport control decides from the current request alone."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from probebench.clients import Agent, Connection
from probebench.clients.scripted import PROBE_OPD_NM, ZERO_OPD_NM, play
from probebench.kernel.canonical import encode

SUGGESTED = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
FINAL = {"kind": "final"}


def request(command: list[float], available: str, last_result: Any = None) -> dict[str, Any]:
    return {
        "kind": "request",
        "request_id": "a" * 32,
        "observation": {"command_opd_nm": command},
        "available_actions": available.split(),
        "last_result": last_result,
    }


FITTED = {"kind": "estimated", "fit": {"suggested_command_opd_nm": SUGGESTED}}
BEGIN = request(ZERO_OPD_NM, "expose submit")
PROBED = request(PROBE_OPD_NM, "expose estimate submit")
DONE = request(PROBE_OPD_NM, "expose estimate submit", FITTED)


def played(*messages: dict[str, Any]) -> list[tuple[str, list[float] | None]]:
    """What the control does in a session of these messages."""
    sent = io.BytesIO()
    play(Agent(Connection(io.BytesIO(b"".join(map(encode, messages))), sent)))
    actions = [json.loads(line) for line in sent.getvalue().splitlines()]
    return [(action["action"], action.get("command_opd_nm")) for action in actions]


def test_in_the_assisted_track_it_probes_estimates_and_submits_the_suggestion() -> None:
    assert played(BEGIN, PROBED, DONE, FINAL) == [
        ("expose", PROBE_OPD_NM),
        ("estimate", None),
        ("submit", SUGGESTED),
    ]


def test_in_the_direct_track_it_probes_and_submits_zero() -> None:
    probed = request(PROBE_OPD_NM, "expose submit")
    assert played(BEGIN, probed, FINAL) == [("expose", PROBE_OPD_NM), ("submit", ZERO_OPD_NM)]


@pytest.mark.parametrize(
    ("first", "done"),
    [
        (BEGIN, ("expose", PROBE_OPD_NM)),
        (PROBED, ("estimate", None)),
        (DONE, ("submit", SUGGESTED)),
        (request(ZERO_OPD_NM, "submit"), ("submit", ZERO_OPD_NM)),
        (request(PROBE_OPD_NM, "submit"), ("submit", ZERO_OPD_NM)),
    ],
)
def test_started_anew_at_any_request_it_does_what_it_would_have_done(
    first: dict[str, Any], done: tuple[str, list[float] | None]
) -> None:
    assert played(first, FINAL) == [done]
