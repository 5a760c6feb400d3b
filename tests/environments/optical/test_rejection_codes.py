"""Rejection codes: which there are, which comes first, and that nothing else comes."""

from __future__ import annotations

import ast
import typing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.kernel.episode import Action, Rejection
from probebench.kernel.errors import ActionRejectedError
from probebench.wire import optical as wire
from tests.environments.optical.protocol_page import PAGE, input_rows, table
from tests.environments.optical.protocol_session import exposes, opened

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
REJECTIONS = [row for row in input_rows(TEXT) if row.is_rejection]
SOURCES = ("kernel/strictjson.py", "environments/optical/*.py")
UNREACHABLE = {"too_large"}  # the channel ends the session first

# -- which there are ------------------------------------------------------------------


def codes_in(source: str) -> set[str]:
    """Every code that a source raises.  Raises ValueError for one that cannot be read."""
    found: set[str] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in {"ActionRejectedError", "_RefusedError"}:
                found |= _codes_of(node.args[0], tree)
    return found


def _codes_of(argument: ast.expr, tree: ast.Module) -> set[str]:
    match argument:
        case ast.Constant(value=str(code)):
            return {code}
        case ast.IfExp(body=body, orelse=orelse):
            return _codes_of(body, tree) | _codes_of(orelse, tree)
        case ast.Name(id=name):
            return _codes_assigned(tree, lambda target: ast.unparse(target) == name)
        case ast.Starred(value=ast.Subscript(value=table)):  # *refused[...]: code and sentence
            prefix = f"{ast.unparse(table)}["
            return _codes_assigned(tree, lambda target: ast.unparse(target).startswith(prefix))
        case ast.Tuple(elts=[code, _]):
            return _codes_of(code, tree)
        case ast.Attribute(attr="code"):  # handed on from an error raised elsewhere
            return set()
    raise ValueError(f"a code is given as {ast.unparse(argument)}, which is not read here")


def _codes_assigned(tree: ast.Module, is_meant: typing.Callable[[ast.expr], bool]) -> set[str]:
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(map(is_meant, node.targets))
    ]
    return {code for value in values for code in _codes_of(value, tree)}


def test_the_page_the_schema_and_the_source_have_the_same_codes() -> None:
    listed = [cells[0].strip("`") for cells in table(TEXT, "Code")]
    raised = {
        code
        for pattern in SOURCES
        for path in (ROOT / "probebench").glob(pattern)
        for code in codes_in(path.read_text(encoding="utf-8"))
    }
    assert sorted(listed) == sorted(raised)
    assert listed == list(typing.get_args(wire.RejectionCode))


def test_every_code_that_a_client_can_see_has_a_row() -> None:
    assert {row.code for row in REJECTIONS} | UNREACHABLE == set(
        typing.get_args(wire.RejectionCode)
    )


def test_codes_are_found_in_every_form_in_which_they_are_given() -> None:
    source = (
        "def f(x):\n"
        "    code = 'a' if x else 'b'\n"
        "    raise ActionRejectedError(code, '')\n"
        "    raise _RefusedError('c', '')\n"
        "    refused['y'] = ('d', '')\n"
        "    raise ActionRejectedError(*refused[x])\n"
    )
    assert codes_in(source) == {"a", "b", "c", "d"}
    with pytest.raises(ValueError, match="not read here"):
        codes_in("raise ActionRejectedError(f'{x}', '')")


ASK_BODY, ASK, EPISODE = opened()
VALID = exposes()(ASK_BODY)


def _with_bytes(position: int, replacement: bytes) -> bytes:
    return VALID[:position] + replacement + VALID[position + 1 :]


@given(
    st.binary(max_size=300)
    | st.builds(_with_bytes, st.integers(0, len(VALID) - 1), st.binary(max_size=3))
)
def test_any_bytes_are_an_action_or_a_rejection_with_a_listed_code(line: bytes) -> None:
    before = EPISODE.state_digest()
    try:
        cause: Action | Rejection = EPISODE.parse(ASK, line)
    except ActionRejectedError as error:
        cause = Rejection(error.code, error.message)
    if isinstance(cause, Rejection):
        assert cause.code in typing.get_args(wire.RejectionCode)
        assert dict(EPISODE.cost(cause)) == {"requests": 1}
    assert EPISODE.state_digest() == before


# -- which comes first ----------------------------------------------------------------

ORDERED = [
    (b"\xff", "invalid_utf8"),
    (b"[", "not_json"),
    (b'{"action": "a", "action": "a"}', "duplicate_key"),
    (b'{"action": "measure", "x": 1}', "unknown_action"),
    (b'{"action": "expose", "request_id": 1, "x": 1}', "missing_field"),
    (b'{"action": "estimate", "protocol": 1, "request_id": 1, "x": 1}', "unknown_field"),
    (b'{"action": "estimate", "protocol": "v2", "request_id": 1}', "wrong_type"),
    (b'{"action": "estimate", "protocol": "v2", "request_id": "x"}', "wrong_protocol"),
    (
        b'{"action":"expose","protocol":"probebench.agent.v1","request_id":"x","command_opd_nm":[]}',
        "unknown_request_id",
    ),
]


@pytest.mark.parametrize(("line", "code"), ORDERED, ids=lambda value: str(value)[:40])
def test_the_first_broken_rule_is_the_one_that_is_reported(line: bytes, code: str) -> None:
    _, ask, episode = opened()
    with pytest.raises(ActionRejectedError) as caught:
        episode.parse(ask, line + b"\n")
    assert caught.value.code == code


def test_the_command_is_read_before_the_budget_is_looked_at() -> None:
    request, ask, episode = opened(exposures=1)
    with pytest.raises(ActionRejectedError) as caught:
        episode.parse(ask, exposes([1e6] * 6)(request))
    assert caught.value.code == "out_of_bounds"
    with pytest.raises(ActionRejectedError) as caught:
        episode.parse(ask, exposes()(request))
    assert caught.value.code == "exposure_budget"
