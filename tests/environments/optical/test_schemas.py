"""The schemas in docs/schemas are current, and they and the driver mean the same."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from probebench.app.registry import default_registry
from probebench.app.session import run_session
from probebench.kernel.errors import ActionRejectedError
from probebench.wire import optical as wire
from tests.environments.optical.protocol_session import (
    BOUND_NM,
    Message,
    action,
    ends,
    estimates,
    exposes,
    opened,
    small_config,
    submits,
)
from tests.rigs import RepliesInProcess, constant_rig

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "docs" / "schemas"
STRUCTURAL = {
    "not_an_object",
    "missing_field",
    "unknown_field",
    "unknown_action",
    "wrong_type",
    "wrong_length",
    "wrong_protocol",
}
REQUEST, ASK, EPISODE = opened()


def validator(message: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"optical.{message}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


ACTIONS = [validator(name) for name in wire.CLIENT_MESSAGES]
MESSAGES = {name: validator(name) for name in wire.DRIVER_MESSAGES}


# -- the files ------------------------------------------------------------------------


def test_the_schemas_are_current(repository: Path) -> None:
    script = repository / "scripts" / "generate_schemas.py"
    ran = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_every_schema_is_valid_closed_and_names_its_version() -> None:
    entry = default_registry()["optical"]
    assert entry.schemas is not None
    for name, schema in entry.schemas().items():
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"urn:probebench:probebench.agent.v1:{name}"
        assert open_objects(schema) == []


def open_objects(schema: Any, place: str = "#") -> list[str]:
    """Where a schema describes the properties of an object and admits others."""
    found = []
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is not False:
            found.append(place)
        if schema.get("type") == "object" and "properties" not in schema:
            found.append(place)
        for key, inner in schema.items():
            if key != "properties":
                found += open_objects(inner, f"{place}/{key}")
        for key, inner in schema.get("properties", {}).items():
            found += open_objects(inner, f"{place}/properties/{key}")
    elif isinstance(schema, list):
        for index, inner in enumerate(schema):
            found += open_objects(inner, f"{place}/{index}")
    return found


def test_a_schema_that_admits_other_fields_is_found() -> None:
    closed = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    assert open_objects(closed) == []
    assert open_objects({"items": {"properties": {"a": closed}}}) == ["#/items"]


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.json")), ids=lambda p: p.name)
def test_the_configurations_fit_their_schema(path: Path) -> None:
    validator("config").validate(json.loads(path.read_text(encoding="utf-8")))


# -- what the driver sends ------------------------------------------------------------


def everything(message: Message) -> bytes:
    """A rejection, an exposure, a fit, the saved fit, another exposure, a submission."""
    lines: list[Callable[[Message], bytes]] = [
        lambda _message: b"\n",
        exposes(),
        estimates,
        estimates,
        exposes([0, 200, 0, 0, 0, -200]),
    ]
    turn = message["turn"] - 1
    return lines[turn](message) if turn < len(lines) else submits(message)


def messages_of(folder: Path, reply: Callable[[Message], bytes], **config: Any) -> list[Message]:
    clients = RepliesInProcess(lambda _ask, message: reply(message))
    run_session(constant_rig(), folder, small_config(**config), clients)
    return [json.loads(message) for message in clients.messages]


@pytest.mark.parametrize("config", [{}, {"track": "direct_action"}, {"requests": 3}], ids=str)
def test_every_message_of_a_session_fits_its_schema(config: Message, tmp_path: Path) -> None:
    messages = messages_of(tmp_path / "a", everything, **config)
    assert [message["kind"] for message in messages[-2:]] == ["request", "final"]
    for message in messages:
        MESSAGES[message["kind"]].validate(message)


def test_a_session_shows_every_kind_of_result(tmp_path: Path) -> None:
    """Or the test above would say little."""
    results = [message.get("last_result") for message in messages_of(tmp_path / "a", everything)]
    kinds = {None if result is None else result["kind"] for result in results}
    assert kinds == {None, "rejected", "exposed", "estimated"}


def test_a_message_with_a_field_more_or_less_does_not_fit(tmp_path: Path) -> None:
    for message in messages_of(tmp_path / "a", ends):
        schema = MESSAGES[message["kind"]]
        assert not schema.is_valid({**message, "residual_wfe_nm_rms": 1.0})
        for name in message:
            lacking = {key: value for key, value in message.items() if key != name}
            assert not schema.is_valid(lacking), name


# -- what the driver reads ------------------------------------------------------------


def fits_a_schema(value: Any) -> bool:
    return any(schema.is_valid(value) for schema in ACTIONS)


def refusal(value: Any) -> str | None:
    """The code with which the parser refuses a value, or None."""
    try:
        EPISODE.parse(ASK, json.dumps(value).encode() + b"\n")
    except ActionRejectedError as error:
        return error.code
    return None


COEFFICIENTS = st.floats(-BOUND_NM, BOUND_NM) | st.integers(-int(BOUND_NM), int(BOUND_NM))
COMMANDS = st.lists(COEFFICIENTS, min_size=6, max_size=6)
VALID = st.builds(
    lambda name, command: action(REQUEST, name, command_opd_nm=command),
    st.sampled_from(["expose", "submit"]),
    COMMANDS,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-300, 300) | st.floats(-300, 300) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(VALID)
def test_what_fits_a_schema_and_the_bounds_is_accepted(value: Message) -> None:
    assert fits_a_schema(value)
    assert refusal(value) is None


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A valid action with one or two parts replaced, removed or added."""
    value = copy.deepcopy(draw(VALID))
    for _ in range(draw(st.integers(1, 2))):
        names = sorted(value)
        if not names:
            break
        name = draw(st.sampled_from(names))
        match draw(st.sampled_from(["replace", "remove", "add", "resize", "element", "estimate"])):
            case "replace":
                value[name] = draw(ANYTHING)
            case "remove":
                del value[name]
            case "add":
                value[draw(st.text(max_size=9))] = draw(ANYTHING)
            case "resize":
                value["command_opd_nm"] = draw(st.lists(COEFFICIENTS, max_size=8))
            case "element":
                value["command_opd_nm"] = [0.0] * 5 + [draw(ANYTHING)]
            case _:
                value["action"] = "estimate"
    return value


@given(mutated() | ANYTHING)
def test_the_schemas_and_the_parser_refuse_the_same_structures(value: Any) -> None:
    code = refusal(value)
    if fits_a_schema(value):
        assert code not in STRUCTURAL
    else:
        assert code is not None
    if code in STRUCTURAL:
        assert not fits_a_schema(value)


def test_the_parser_alone_knows_bounds_identifiers_and_budgets() -> None:
    beyond = action(REQUEST, "expose", command_opd_nm=[BOUND_NM + 1, 0, 0, 0, 0, 0])
    another = action({"request_id": "0" * 32}, "submit", command_opd_nm=[0] * 6)
    early = action(REQUEST, "estimate")
    assert all(map(fits_a_schema, (beyond, another, early)))
    assert [refusal(value) for value in (beyond, another, early)] == [
        "out_of_bounds",
        "unknown_request_id",
        "estimator_precondition",
    ]
