"""The optical protocol for agent authors: what is read from messages, what is sent."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from probebench.clients import Agent, Connection, DriverGoneError, Message, Rejected, connect
from probebench.clients.optical import PROTOCOL
from probebench.kernel.canonical import encode
from probebench.wire import optical as wire

COMMAND = [80.0, 0.0, 0.0, 0.0, 0.0, -0.5]


def request(identifier: str = "a" * 32, **fields: Any) -> dict[str, Any]:
    """As much of a request as the library reads."""
    return {
        "kind": "request",
        "request_id": identifier,
        "instrument": {"read_noise_e": 3.0},
        "resources": {
            "limits": {"requests": 24, "exposures": 6, "estimates": 3, "photons": 600},
            "spent": {"requests": 4, "exposures": 2, "estimates": 3, "photons": 200},
        },
        "available_actions": ["expose", "submit"],
        "last_result": None,
        "observation": {"command_opd_nm": COMMAND, "electrons": [[-1.5, 2], [3.25, 4]]},
        **fields,
    }


FINAL = {
    "kind": "final",
    "last_acquired_observation": {"command_opd_nm": [0.0] * 6, "electrons": [[7.0]]},
}


def agent_with(*messages: dict[str, Any]) -> tuple[Agent, io.BytesIO]:
    sent = io.BytesIO()
    return connect(Connection(io.BytesIO(b"".join(map(encode, messages))), sent)), sent


def test_connecting_waits_for_the_first_request() -> None:
    agent, _ = agent_with(request())
    assert agent.current.body == request()
    with pytest.raises(DriverGoneError):
        agent_with()


def test_the_image_is_an_array_of_signed_electrons_with_row_zero_first() -> None:
    image = Message(request()).frame_e
    assert image.dtype == np.float64
    assert image.tolist() == [[-1.5, 2.0], [3.25, 4.0]]


def test_the_last_image_of_the_acknowledgement_is_read_like_any_other() -> None:
    final = Message(FINAL)
    assert final.is_final
    assert final.frame_e.tolist() == [[7.0]]
    assert final.command_opd_nm == [0.0] * 6
    assert final.available == []
    assert (final.rejected, final.fit) == (None, None)


def test_a_request_says_what_is_left_and_what_may_be_done() -> None:
    message = Message(request())
    assert not message.is_final
    assert message.available == ["expose", "submit"]
    assert message.command_opd_nm == COMMAND
    assert message.instrument == {"read_noise_e": 3.0}
    names = ("requests", "exposures", "estimates", "photons")
    assert [message.remaining(name) for name in names] == [20, 4, 0, 400]


def test_a_rejection_is_read_with_its_code_and_sentence() -> None:
    result = {"kind": "rejected", "code": "out_of_bounds", "message": "stay within"}
    message = Message(request(last_result=result))
    assert message.rejected == Rejected("out_of_bounds", "stay within")
    assert message.fit is None


def test_a_fit_is_read_where_the_last_action_asked_for_one() -> None:
    result = {"kind": "estimated", "cached": False, "fit": {"status": "converged"}}
    message = Message(request(last_result=result))
    assert message.fit == {"status": "converged"}
    assert message.rejected is None
    assert Message(request(last_result={"kind": "exposed", "exposure_index": 1})).fit is None


def test_each_action_is_a_valid_message_of_the_protocol() -> None:
    agent, sent = agent_with(*(request() for _ in range(3)), FINAL)
    agent.expose(COMMAND)
    agent.estimate()
    assert agent.submit(np.array(COMMAND)).is_final
    lines = sent.getvalue().splitlines(keepends=True)
    for model, line in zip(wire.CLIENT_MESSAGES.values(), lines, strict=True):
        model.model_validate_json(line)
    assert [json.loads(line).get("command_opd_nm") for line in lines] == [COMMAND, None, COMMAND]


def test_every_action_names_the_request_it_answers() -> None:
    agent, sent = agent_with(request("a" * 32), request("b" * 32), request("c" * 32))
    agent.expose(COMMAND)
    agent.expose(COMMAND)
    identifiers = [json.loads(line)["request_id"] for line in sent.getvalue().splitlines()]
    assert identifiers == ["a" * 32, "b" * 32]


def test_exact_bytes_may_be_sent_and_the_next_message_follows() -> None:
    agent, sent = agent_with(request(), request("b" * 32))
    assert agent.send_line(b"no action\n").body["request_id"] == "b" * 32
    assert sent.getvalue() == b"no action\n"


def test_an_action_after_the_end_finds_the_driver_gone() -> None:
    agent, _ = agent_with(request(), FINAL)
    with agent as entered:
        entered.submit(COMMAND)
        with pytest.raises(DriverGoneError):
            entered.expose(COMMAND)


def test_the_library_and_the_wire_speak_of_the_same_protocol() -> None:
    assert PROTOCOL == wire.PROTOCOL
