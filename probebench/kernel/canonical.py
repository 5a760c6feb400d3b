"""The one encoding of everything that is written or sent: canonical JSON.

UTF-8, keys sorted, no spaces, shortest round-trip floats, one final LF.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import orjson

# JSON values are checked where they enter (strictjson) and where they leave
# (encode); a recursive alias would make every reader of a record cast.
Json: TypeAlias = Any


def encode(value: Json) -> bytes:
    """Encode one JSON value as canonical bytes, LF included.

    Raises ValueError for a number that is not finite, TypeError for what JSON
    cannot hold (keys that are not strings, integers beyond 64 bits, lone
    surrogates).
    """
    # orjson writes NaN and infinity as null, so they are looked for first.
    _require_finite(value)
    return _dumps(value)


def decode(data: bytes) -> Json:
    """Read canonical bytes.  Raises ValueError for any others.

    Equality with the re-encoded value is the whole check: it excludes
    duplicate keys, other spellings of a number, spaces and trailing bytes.
    """
    value = orjson.loads(data)
    try:
        written = _dumps(value)
    except TypeError as error:  # orjson reads 1,024 levels of nesting and writes 254
        raise ValueError(f"the bytes are not canonical JSON: {error}") from None
    # Where a number has become infinite, null is written, which differs as well.
    if written != data:
        raise ValueError("the bytes are not canonical JSON")
    return value


def _dumps(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def sha256_hex(data: bytes) -> str:
    """Hexadecimal SHA-256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Json) -> str:
    """Hexadecimal SHA-256 of the canonical bytes of ``value``."""
    return sha256_hex(encode(value))


def _require_finite(value: Json) -> None:
    if isinstance(value, dict):
        _require_all_finite(value.values())
    elif isinstance(value, (list, tuple)):
        if not _has_finite_sum(value):
            _require_all_finite(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a number to be written is not finite: {value!r}")


def _require_all_finite(items: Iterable[Json]) -> None:
    for item in items:
        # Most leaves are strings and integers, and a call for each would take
        # longer than the encoding.
        if not isinstance(item, (str, int)):
            _require_finite(item)


def _has_finite_sum(items: Sequence[Json]) -> bool:
    """Whether the items are numbers and all finite, found out at once.

    A row of an image is looked at ten times as fast so.  False decides nothing.
    """
    try:
        return math.isfinite(sum(items))
    except (TypeError, OverflowError):  # not numbers; a sum of integers too large for a float
        return False
