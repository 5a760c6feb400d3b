"""Canonical JSON: one spelling for every value, and no other is read."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.kernel.canonical import Json, decode, digest, encode, sha256_hex

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FINITE | st.text(max_size=20)
)
# Lone surrogates are no text; Hypothesis leaves them out of st.text by itself.
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_decode_inverts_encode(value: Json) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_the_standard_parser_reads_the_same_value(value: Json) -> None:
    assert json.loads(encode(value)) == value


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert encode(value) == encode(dict(reversed(list(value.items()))))


@given(FINITE)
def test_a_float_comes_back_bit_for_bit(value: float) -> None:
    back = decode(encode(value))
    assert math.copysign(1, back) == math.copysign(1, value)
    assert back == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_at_any_depth(value: float) -> None:
    for nested in (value, [value], {"a": [1, {"b": value}]}, (0.0, value)):
        with pytest.raises(ValueError, match="not finite"):
            encode(nested)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1}\n',
        b'{"b":1,"a":2}\n',
        b'{"a":1,"a":1}\n',
        b'{"a":1}',
        b'{"a":1}\n\n',
        b'{"a":1.50}\n',
        b'{"a":15e-1}\n',
        b'{"\\u0061":1}\n',
        b"\xef\xbb\xbf{}\n",
        b"NaN\n",
        b"",
        b"[" * 255 + b"]" * 255 + b"\n",
        b"[" * 2000 + b"]" * 2000 + b"\n",
    ],
)
def test_any_other_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)


def test_digest_is_that_of_the_canonical_bytes() -> None:
    assert digest({"a": 1.5}) == sha256_hex(b'{"a":1.5}\n')
