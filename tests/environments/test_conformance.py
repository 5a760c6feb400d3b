"""Every environment, the toys included, keeps what the kernel relies on."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from probebench.kernel.canonical import encode
from probebench.kernel.episode import Ask
from tests import conformance
from tests.conformance import Case

REPOSITORY = Path(__file__).parents[2]
SEED = "0123456789abcdeffedcba9876543210"


def thermometer_reply(ask: Ask, message: dict[str, Any]) -> bytes:
    """Read three times, one bad line, average, answer: from the request alone."""
    count, result = len(message["readings"]), message["result"]
    if message["step"] == 2:
        return b"not an action\n"
    if count < 3:
        done = "read"
    elif not result.startswith("average"):
        done = "average"
    else:
        done = "answer"
    return encode({"id": message["id"], "do": done, "value": count if done == "answer" else None})


def breeder_reply(ask: Ask, message: dict[str, Any]) -> bytes:
    """Malformed at first in every third proposal, then repaired."""
    if message["attempt"] % 3 == 0 and message["repair"] is None:
        return b'{"x": "ten"}\n'
    return encode({"x": (message["attempt"] * 31) % 1000})


def optical_reply(ask: Ask, message: dict[str, Any]) -> bytes:
    """A rejected line, the defocus probe, the estimator where there is one, a submission."""
    spent, result = message["resources"]["spent"], message["last_result"]
    action = {"protocol": message["protocol"], "request_id": message["request_id"]}
    if spent["requests"] == 0:
        return b'{"protocol":"probebench.agent.v1"}\n'
    if spent["exposures"] == 1:
        return encode({**action, "action": "expose", "command_opd_nm": [80, 0, 0, 0, 0, 0]})
    if "estimate" in message["available_actions"] and (
        result is None or result["kind"] != "estimated"
    ):
        return encode({**action, "action": "estimate"})
    command = (
        result["fit"]["suggested_command_opd_nm"] if result["kind"] == "estimated" else [0] * 6
    )
    return encode({**action, "action": "submit", "command_opd_nm": command})


def optical_config(name: str) -> dict[str, Any]:
    """A development configuration over a small detector: whole sessions in milliseconds."""
    config: dict[str, Any] = json.loads((REPOSITORY / "configs" / f"{name}.json").read_text())
    config["pupil"]["samples"], config["detector"]["pixels"] = 32, 16
    return config


CASES = {
    "thermometer": Case({"environment": "thermometer", "seed": SEED}, thermometer_reply),
    "breeder": Case({"environment": "breeder", "proposals": 3, "inner": None}, breeder_reply),
    "breeder with a session inside": Case(
        {
            "environment": "breeder",
            "proposals": 1,
            "inner": {"environment": "breeder", "proposals": 0, "inner": None},
        },
        breeder_reply,
    ),
    "optical assisted": Case(optical_config("agent_protocol_development"), optical_reply),
    "optical direct": Case(optical_config("agent_protocol_development_direct"), optical_reply),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.mark.parametrize("toy", ["thermometer", "breeder"])
def test_the_seam_takes_a_toy_of_at_most_82_lines(toy: str) -> None:
    text = (REPOSITORY / f"tests/toys/{toy}.py").read_text()
    assert len(text.splitlines()) <= 82


def test_pending_is_idempotent(case: Case) -> None:
    conformance.check_pending_is_idempotent(case)


def test_a_key_names_one_effect(case: Case) -> None:
    conformance.check_keys_name_one_effect_each(case)


def test_parse_and_cost_change_nothing(case: Case) -> None:
    conformance.check_parse_and_cost_are_pure(case)


def test_garbage_is_rejected_with_a_code(case: Case) -> None:
    conformance.check_garbage_is_rejected(case)


def test_a_fault_ends_the_episode_or_moves_it_on(case: Case) -> None:
    conformance.check_a_fault_ends_or_moves_on(case)


def test_two_sessions_with_one_nonce_are_equal_bytewise(case: Case, tmp_path: Path) -> None:
    conformance.check_sessions_repeat_bytewise(case, tmp_path)


def test_a_finished_session_verifies_with_every_computation_run_again(
    case: Case, tmp_path: Path
) -> None:
    conformance.check_verifies(case, tmp_path)


def test_a_session_killed_before_any_durable_step_resumes_to_the_same_end(
    case: Case, tmp_path: Path
) -> None:
    assert conformance.check_resumes_from_every_durable_step(case, tmp_path) > 20


def test_no_hidden_value_stands_in_a_public_message(case: Case, tmp_path: Path) -> None:
    conformance.check_no_secret_is_public(case, tmp_path)


@pytest.mark.parametrize(
    "message",
    [
        {"wfe": 74.76638301234567},
        {"deep": [{"list": [1, 74.76638301234567]}]},
        {"text": "the answer is 74.76638301234567 nm"},
        {"42cf526e27117b01a7e858457035b0f5": 1},
        {"note": "seed=42cf526e27117b01a7e858457035b0f5"},
        {"photons": 29101},
        {"name": "development"},
    ],
)
def test_the_search_for_hidden_values_finds_each_that_is_planted(message: dict[str, Any]) -> None:
    secrets = [74.76638301234567, "42cf526e27117b01a7e858457035b0f5", 29101, "development"]
    assert conformance.leaks_in(encode(message), secrets)


def test_the_search_for_hidden_values_looks_into_pictures() -> None:
    image = Image.new("P", (32, 32))
    image.putpalette(list(range(256)) * 3)
    image.putdata(list(b"42cf526e27117b01a7e858457035b0f5") * 32)
    buffer = BytesIO()
    image.save(buffer, format="PNG")
    message = encode({"png_base64": base64.b64encode(buffer.getvalue()).decode()})
    assert conformance.leaks_in(message, ["42cf526e27117b01a7e858457035b0f5"])
    assert not conformance.leaks_in(message, ["00000000000000000000000000000000"])
