"""Hostile bytes by design: lines near an action, JSON near a document, streams of lines.

Everything is drawn from a ``Random`` that the caller seeds, or that Hypothesis
gives so that it can shrink what it finds.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from probebench.kernel.canonical import Json
from probebench.kernel.framing import MAX_LINE_BYTES

TOKENS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\r\n", b"\x00", b" ", b"\t",
    b"\xef\xbb\xbf", b"\xff", b"\xfe\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"NaN", b"-Infinity", b"1e999", b"-0.0", b"0x10", b"01", b"1.", b".5", b"5e-324", b"1_0",
    b"true", b"null", b'"80"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0061"', b'"\\x"',
    b"9" * 20, b"9" * 65, b"0." + b"1" * 70, b"9223372036854775808", b"-9223372036854775809",
    b'"action":"submit",', b'"a\\u0063tion":"submit",', b'"extra":1,', b"/*c*/", b"//c\n",
    b"[" * 33, b"]" * 33, b'{"a":' * 40, b"200.00000000000003", b"-200.00000000000003",
    "\u2028".encode(), "\u0130".encode(), "\U0001f52d".encode(), b"'", b"undefined",
]  # fmt: skip
LEAVES: list[Json] = [
    None, True, False, 0, -1, 1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.5, 1e308, 5e-324, "", "x",
    "\x00", "é", "0" * 64, "f" * 64, "=", "AAAA", "../../etc/passwd", [], {}, [[]], {"": 0}, "9" * 5000,
    {"format": "probebench.session/1"}, [1] * 7, "probebench.agent.v1", "2026-01-01", 10**18,
]  # fmt: skip


def json_value(chance: Random, depth: int = 0) -> Json:
    """Some JSON value, mostly small."""
    kind = chance.randrange(8 if depth < 3 else 6)
    if kind < 6:
        return copy.deepcopy(chance.choice(LEAVES))
    children = [json_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        return children
    return {chance.choice(["a", "action", "format", "turn", ""]): child for child in children}


def changed(chance: Random, document: Json) -> Json:
    """A copy with one to three things in it replaced, removed, added or swapped."""
    document = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        holders = [holder for holder in _holders(document) if holder]
        if not holders:
            return json_value(chance)
        _change(chance, chance.choice(holders))
    return document


def _holders(value: Json) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _holders(item)
    elif isinstance(value, list):
        yield value
        # A row of an image is like its neighbour.
        for item in value[:3]:
            yield from _holders(item)


def _change(chance: Random, holder: Any) -> None:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    key, kind = chance.choice(keys), chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[chance.choice(["extra", key + " ", key.upper(), ""])] = json_value(chance)
    elif kind == 1:
        holder.append(json_value(chance))
    elif kind == 2:
        other = chance.choice(keys)
        holder[key], holder[other] = holder[other], holder[key]
    else:
        holder[key] = _near(chance, holder[key])


def _near(chance: Random, value: Json) -> Json:
    """A value that is nearly this one, or any other."""
    if chance.random() < 0.5:
        return json_value(chance)
    if isinstance(value, bool) or value is None:
        return chance.choice([0, 1, "", not value])
    if isinstance(value, int):
        return chance.choice([value + 1, value - 1, -value, float(value), str(value), bool(value)])
    if isinstance(value, float):
        return chance.choice(
            [-value, value * (1 + 2**-52), int(value) if abs(value) < 2**62 else 0]
        )
    if isinstance(value, str):
        return chance.choice([value[:-1], value + "0", value.upper(), value[::-1], [value]])
    return chance.choice([[value], {"value": value}, list(value), len(value)])


def line(chance: Random, lawful: dict[str, Json]) -> bytes:
    """One line, its newline included: near a lawful one, or far from any."""
    kind = chance.randrange(12)
    if kind == 0:
        return chance.randbytes(chance.randrange(60)).replace(b"\n", b"") + b"\n"
    if kind == 1:
        return b"".join(chance.choices(TOKENS, k=chance.randrange(1, 9))) + b"\n"
    if kind in (2, 3, 4, 5):
        return _text(changed(chance, lawful))
    if kind == 6:
        return _text(lawful)
    if kind == 7 and chance.random() < 0.05:
        return _sized(chance, lawful)
    return damaged(chance, _text(lawful))


def _text(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _sized(chance: Random, lawful: dict[str, Json]) -> bytes:
    """A line about as long as a line may be."""
    size = MAX_LINE_BYTES + chance.randint(-2, 2)
    padding = chance.choice([b" ", b"[", b"9", b'"'])
    return _text(lawful).rstrip(b"\n").ljust(size - 1, padding) + b"\n"


def damaged(chance: Random, data: bytes) -> bytes:
    """The same bytes with one to three places overwritten, cut out or added to."""
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice([0, 0, 1, 1, 2, 8]))
        piece = chance.choice([chance.choice(TOKENS), bytes([chance.randrange(256)]), b""])
        data = data[:start] + piece + data[end:]
    return data


def pieces(chance: Random, data: bytes) -> Iterator[bytes]:
    """The same bytes, cut anywhere."""
    start = 0
    while start < len(data):
        size = chance.choice([1, 2, 7, 64, 1000, 20_000])
        yield data[start : start + size]
        start += size


def is_sentence(message: str, most: int = 600) -> bool:
    """Bounded, and nothing that a terminal would obey."""
    return message.isprintable() and 0 < len(message) < most
