"""Any bytes give a value or one typed refusal; each rule has its code."""

from __future__ import annotations

import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.kernel.canonical import encode
from probebench.kernel.errors import ActionRejectedError, ArtifactError, ConfigError
from probebench.kernel.framing import MAX_LINE_BYTES
from probebench.kernel.strictjson import (
    MAX_DOCUMENT_DEPTH,
    MAX_LINE_DEPTH,
    MAX_NUMBER_CHARACTERS,
    parse_document,
    parse_object,
    require_fields,
    require_number_vector,
)

CODES = {
    "empty_line",
    "byte_order_mark",
    "invalid_utf8",
    "too_deep",
    "not_json",
    "duplicate_key",
    "nonfinite_number",
    "number_too_long",
    "lone_surrogate",
    "not_an_object",
}

REFUSED = [
    (b"", "empty_line"),
    (b"\n", "empty_line"),
    (b" \t\r\n", "empty_line"),
    (b'\xef\xbb\xbf{"a":1}\n', "byte_order_mark"),
    (b'{"a":"\xff"}\n', "invalid_utf8"),
    (b'{"a":"\xed\xa0\x80"}\n', "invalid_utf8"),
    (b'{"a":"\xc0\xaf"}\n', "invalid_utf8"),
    ('{"a":1}\n'.encode("utf-16"), "invalid_utf8"),
    ('{"a":1}\n'.encode("utf-16-le"), "not_json"),
    (b'{"a":1\n', "not_json"),
    (b"{'a':1}\n", "not_json"),
    (b'{"a":1,}\n', "not_json"),
    (b'{"a":01}\n', "not_json"),
    (b'{"a":+1}\n', "not_json"),
    (b'{"a":.5}\n', "not_json"),
    (b'{"a":0x10}\n', "not_json"),
    (b'{"a":"\x01"}\n', "not_json"),
    (b'{"a":"\\x41"}\n', "not_json"),
    (b'{"a":1} {"a":2}\n', "not_json"),
    (b'{"a":1}\x00\n', "not_json"),
    (b'\xc2\xa0{"a":1}\n', "not_json"),
    (b'{"a":1,"a":1}\n', "duplicate_key"),
    (b'{"a":1,"\\u0061":2}\n', "duplicate_key"),
    (b'{"a":{"b":1,"b":2}}\n', "duplicate_key"),
    (b'{"a":NaN}\n', "nonfinite_number"),
    (b'{"a":[Infinity]}\n', "nonfinite_number"),
    (b'{"a":-Infinity}\n', "nonfinite_number"),
    (b'{"a":1e999}\n', "nonfinite_number"),
    (b'{"a":-1e999}\n', "nonfinite_number"),
    (b'{"a":' + b"9" * 10_000 + b"}\n", "number_too_long"),
    (b'{"a":0.' + b"1" * 10_000 + b"}\n", "number_too_long"),
    (b'{"a":9223372036854775808}\n', "number_too_long"),
    (b'{"a":-9223372036854775809}\n', "number_too_long"),
    (b'{"a":"\\ud800"}\n', "lone_surrogate"),
    (b'{"\\udc00":1}\n', "lone_surrogate"),
    (b'{"a":["x\\ud83dx"]}\n', "lone_surrogate"),
    (b"[1]\n", "not_an_object"),
    (b"1\n", "not_an_object"),
    (b"true\n", "not_an_object"),
    (b"null\n", "not_an_object"),
    (b'"a"\n', "not_an_object"),
    (b"[" * 5000 + b"]" * 5000 + b"\n", "too_deep"),
    (b'{"a":' * 3000, "too_deep"),
]


def rejected(line: bytes) -> ActionRejectedError:
    with pytest.raises(ActionRejectedError) as caught:
        parse_object(line)
    return caught.value


@pytest.mark.parametrize(("line", "code"), REFUSED, ids=lambda value: repr(value)[:40])
def test_each_broken_rule_has_its_code(line: bytes, code: str) -> None:
    assert rejected(line).code == code


def test_every_code_has_a_case() -> None:
    assert {code for _, code in REFUSED} == CODES


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":1}\n', {"a": 1}),
        (b'{"a":1}', {"a": 1}),
        (b'{"a":1}\r\n', {"a": 1}),
        (b' { "a" :\t[ 1 , 2.5e0 ] } \n', {"a": [1, 2.5]}),
        (b'{"a":"\\ud83d\\ude00"}\n', {"a": "\U0001f600"}),
        (b'{"a":"[[[[{{{{\\"[["}\n', {"a": '[[[[{{{{"[['}),
        (b'{"a":-0.0}\n', {"a": -0.0}),
        (b'{"a":5e-324}\n', {"a": 5e-324}),
        (b'{"a":1e-400}\n', {"a": 0.0}),
        (b'{"a":9223372036854775807}\n', {"a": 2**63 - 1}),
        (b"{}\n", {}),
    ],
)
def test_what_keeps_the_rules_is_read_as_it_stands(line: bytes, value: object) -> None:
    assert parse_object(line) == value


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}\n"


def test_nesting_is_allowed_up_to_the_bound() -> None:
    assert parse_object(nested(MAX_LINE_DEPTH))["a"] != []
    assert rejected(nested(MAX_LINE_DEPTH + 1)).code == "too_deep"


def test_brackets_inside_strings_are_no_nesting() -> None:
    text = "[" * 5000 + '\\"' + "{" * 5000
    assert parse_object(f'{{"a":"{text}"}}\n'.encode())["a"].startswith("[[")


def test_depth_does_not_depend_on_where_the_caller_stands() -> None:
    def deeper(frames: int, line: bytes) -> str:
        if frames:
            return deeper(frames - 1, line)
        try:
            parse_object(line)
        except ActionRejectedError as error:
            return error.code
        return "accepted"

    room = sys.getrecursionlimit() - 400
    for line in (nested(MAX_LINE_DEPTH), nested(MAX_LINE_DEPTH + 1), b"[" * 16_000):
        assert deeper(room, line) == deeper(0, line)


def test_the_standard_parser_alone_would_depend_on_it() -> None:
    # The negative control: what the count before parsing is there for.
    with pytest.raises(RecursionError):
        json.loads(b"[" * 8000 + b"]" * 8000)


def test_a_number_is_allowed_up_to_the_bound() -> None:
    fits = b"0." + b"1" * (MAX_NUMBER_CHARACTERS - 2)
    assert parse_object(b'{"a":' + fits + b"}\n")["a"] == pytest.approx(1 / 9)
    assert rejected(b'{"a":' + fits + b"1}\n").code == "number_too_long"


def test_numbers_mean_what_the_standard_parser_says() -> None:
    for text in ("80", "-3", "1e2", "0.1", "123.456e-7", "1E+2", "200.00000000000003"):
        mine = parse_object(f'{{"a":{text}}}'.encode())["a"]
        assert (mine, type(mine)) == (json.loads(text), type(json.loads(text)))


def outcome_of(line: bytes) -> object:
    try:
        return parse_object(line)
    except ActionRejectedError as error:
        return error


@given(st.binary(max_size=200))
def test_any_bytes_give_an_object_or_one_typed_rejection(line: bytes) -> None:
    outcome = outcome_of(line)
    if isinstance(outcome, ActionRejectedError):
        assert outcome.code in CODES
    else:
        assert isinstance(outcome, dict)
        encode(outcome)


JSON_BYTES = st.recursive(
    st.one_of(
        st.sampled_from(
            [b"NaN", b"1e999", b"-0", b"1", b"true", b"null", b'"\\ud800"', b'"\\u0061"', b"9" * 70]
        ),
        st.binary(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: b"[" + b",".join(items) + b"]"),
        st.lists(st.tuples(st.sampled_from([b'"a"', b'"\\u0061"', b'"b"']), inner), max_size=3).map(
            lambda pairs: b"{" + b",".join(key + b":" + item for key, item in pairs) + b"}"
        ),
    ),
    max_leaves=12,
)


@given(JSON_BYTES)
def test_near_json_gives_an_object_that_can_be_written_or_a_rejection(line: bytes) -> None:
    outcome = outcome_of(line)
    if isinstance(outcome, ActionRejectedError):
        assert outcome.code in CODES
        assert outcome.message.isascii()
        assert len(outcome.message) < 400
    else:
        assert parse_object(encode(outcome)) == outcome


def test_a_sentence_shows_only_a_bounded_and_escaped_part_of_the_line() -> None:
    bell = "\\u0007\\u001b[31m" * 500
    error = rejected(f'{{"{bell}":1,"{bell}":2}}\n'.encode())
    assert error.code == "duplicate_key"
    assert error.message.isprintable()
    assert len(error.message) < 200


# -- documents ------------------------------------------------------------------


def test_a_document_is_any_json_value() -> None:
    assert parse_document(b'[1, {"a": null}]\n', "settings") == [1, {"a": None}]


@pytest.mark.parametrize(
    "data", [line for line, code in REFUSED if code != "not_an_object"], ids=lambda d: repr(d)[:40]
)
def test_a_document_obeys_the_rules_of_a_line(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^settings: .*; correct the file$"):
        parse_document(data, "settings")


def test_a_document_may_be_larger_and_deeper_than_a_line_up_to_its_bounds() -> None:
    big = encode(["x" * 100] * 1000)
    assert len(big) > MAX_LINE_BYTES
    assert len(parse_document(big, "settings")) == 1000
    parse_document(nested(MAX_DOCUMENT_DEPTH), "settings")
    with pytest.raises(ConfigError, match="deeper than 64"):
        parse_document(nested(MAX_DOCUMENT_DEPTH + 1), "settings")
    with pytest.raises(ConfigError, match="more than 10"):
        parse_document(big, "settings", max_bytes=10)


def test_a_reader_of_records_gives_its_own_error() -> None:
    with pytest.raises(ArtifactError, match=r"^study\.json: a key stands twice") as caught:
        parse_document(b'{"a":1,"a":2}', "study.json", refuse=ArtifactError)
    assert caught.value.artifact == "study.json"


# -- fields ---------------------------------------------------------------------


def test_missing_and_unknown_fields_are_named() -> None:
    require_fields({"a": 1, "b": 2}, {"a", "b"})
    with pytest.raises(ActionRejectedError, match="missing: 'b'") as missing:
        require_fields({"a": 1}, {"a", "b"})
    with pytest.raises(ActionRejectedError, match="unknown: 'c'") as unknown:
        require_fields({"a": 1, "b": 2, "c": 3}, {"a", "b"})
    with pytest.raises(ActionRejectedError, match="missing: 'b'; unknown: 'c'") as both:
        require_fields({"a": 1, "c": 2}, {"a", "b"})
    codes = [caught.value.code for caught in (missing, unknown, both)]
    assert codes == ["missing_field", "unknown_field", "missing_field"]


def test_a_thousand_unknown_fields_give_a_short_sentence() -> None:
    with pytest.raises(ActionRejectedError) as caught:
        require_fields({f"{i:0100d}": 1 for i in range(1000)}, set())
    assert "and 995 more" in caught.value.message
    assert len(caught.value.message) < 500


def vector_code(value: object, low: float = -200.0, high: float = 200.0) -> str:
    with pytest.raises(ActionRejectedError) as caught:
        require_number_vector(value, 3, low, high, "command_opd_nm")
    assert "command_opd_nm" in caught.value.message
    return caught.value.code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "wrong_type"),
        ("80", "wrong_type"),
        ({"0": 1}, "wrong_type"),
        (80, "wrong_type"),
        ([True, 0, 0], "wrong_type"),
        (["80", 0, 0], "wrong_type"),
        ([None, 0, 0], "wrong_type"),
        ([[0], 0, 0], "wrong_type"),
        ([], "wrong_length"),
        ([0, 0], "wrong_length"),
        ([0, 0, 0, 0], "wrong_length"),
        ([0, 0, math.nextafter(200.0, math.inf)], "out_of_bounds"),
        ([0, 0, math.nextafter(-200.0, -math.inf)], "out_of_bounds"),
        ([0, 0, 201], "out_of_bounds"),
        ([0, 0, 10**18], "out_of_bounds"),
        ([0, 0, math.nan], "out_of_bounds"),
        ([0, 0, math.inf], "out_of_bounds"),
    ],
)
def test_a_wrong_vector_is_rejected_with_its_code(value: object, code: str) -> None:
    assert vector_code(value) == code


def test_the_element_at_fault_is_named() -> None:
    with pytest.raises(ActionRejectedError, match=r"command_opd_nm\[1\] is 300"):
        require_number_vector([0, 300, 400], 3, -200.0, 200.0, "command_opd_nm")


def test_the_bounds_themselves_are_within_bounds() -> None:
    assert require_number_vector([-200, 200.0, 0], 3, -200.0, 200.0, "c") == [-200.0, 200.0, 0.0]


def test_an_integer_is_compared_before_it_is_rounded() -> None:
    assert vector_code([0, 0, 2**53 + 1], high=float(2**53)) == "out_of_bounds"


def test_integers_become_floats_and_negative_zero_zero_and_subnormals_stay() -> None:
    vector = require_number_vector([1, -0.0, 5e-324], 3, -200.0, 200.0, "c")
    assert [type(item) for item in vector] == [float] * 3
    assert math.copysign(1.0, vector[1]) == 1.0
    assert vector[2] == 5e-324
