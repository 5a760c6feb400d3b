"""JSON from outside: whatever the bytes are, a value or one typed refusal.

The standard parser accepts duplicate keys, NaN, numbers of any length, other
encodings and lone surrogates, and its limit of nesting depends on how deep
its caller stands.  Everything it would let pass is refused here, by the same
rule whether the bytes are an action, a configuration or a record.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, TypeGuard

from probebench.kernel.canonical import Json
from probebench.kernel.errors import ActionRejectedError, ConfigError, ProbebenchError
from probebench.kernel.framing import MAX_LINE_BYTES

MAX_LINE_DEPTH: Final = 32
MAX_DOCUMENT_DEPTH: Final = 64
MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
MAX_NUMBER_CHARACTERS: Final = 64  # 17 digits give any float64; 55 spell 0.1 out exactly
MAX_EXCERPT_CHARACTERS: Final = 48
MAX_NAMES: Final = 5

Refuse = Callable[[str, str], ProbebenchError]

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
# A string with its escapes, unterminated ones too, or one bracket.
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class _Bounds:
    noun: str
    max_bytes: int
    max_depth: int


class _RefusedError(Exception):
    """A rule that the text breaks; turned into a typed error at the border."""

    def __init__(self, code: str, sentence: str, unquoted: str | None = None) -> None:
        """unquoted: the sentence without a word of the text, where it has one."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.unquoted = sentence if unquoted is None else unquoted


def parse_object(line: bytes) -> dict[str, Json]:
    """Read one line from a client as a JSON object.

    CR is JSON white space, so a line may end in CR LF; the newline may be
    absent.  Raises ActionRejectedError with one of the codes empty_line,
    byte_order_mark, invalid_utf8, too_deep, not_json, duplicate_key,
    nonfinite_number, number_too_long, lone_surrogate, not_an_object; too_large
    where the caller has not bounded the line.
    """
    try:
        value = _parse(line, _Bounds("line", MAX_LINE_BYTES, MAX_LINE_DEPTH))
    except _RefusedError as refused:
        raise ActionRejectedError(
            refused.code, f"{refused.sentence}; send one JSON object in one line"
        ) from None
    if not isinstance(value, dict):
        raise ActionRejectedError(
            "not_an_object", f"the line is {kind_of(value)}; send one JSON object in one line"
        )
    return value


def _config_error(subject: str, sentence: str) -> ConfigError:
    return ConfigError(f"{subject}: {sentence}; correct the file")


def parse_document(
    data: bytes,
    subject: str,
    *,
    max_bytes: int = MAX_DOCUMENT_BYTES,
    refuse: Refuse = _config_error,
) -> Json:
    """Read a whole file as one JSON value, as strictly as a line.

    subject: what the file is called in the error.
    refuse: (subject, sentence) to the error that is raised: ConfigError
        unless told otherwise; ``ArtifactError`` fits for a record.
    """
    try:
        return _parse(data, _Bounds("file", max_bytes, MAX_DOCUMENT_DEPTH))
    except _RefusedError as refused:
        # A file may be a configuration, and its seeds are not for who reads errors.
        raise refuse(subject, refused.unquoted) from None


# -- the text -----------------------------------------------------------------


def _parse(data: bytes, bounds: _Bounds) -> Json:
    text = _decoded(data, bounds)
    _require_shallow(text, bounds)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + MAX_EXCERPT_CHARACTERS]
        sentence = f"the {bounds.noun} is not JSON: {error.msg.lower()}"
        raise _RefusedError(
            "not_json",
            f"{sentence} at character {error.pos + 1}, near {excerpt(near)}",
            f"{sentence} in line {error.lineno}, column {error.colno}",
        ) from None
    for string in _strings(value):
        if _SURROGATE.search(string):
            raise _RefusedError(
                "lone_surrogate",
                f"the string {excerpt(string)} holds half a surrogate pair",
                "a string holds half a surrogate pair",
            )
    return value


def _decoded(data: bytes, bounds: _Bounds) -> str:
    if len(data) > bounds.max_bytes:
        raise _RefusedError(
            "too_large", f"the {bounds.noun} has {len(data)} bytes, more than {bounds.max_bytes}"
        )
    if not data.strip(_BLANK):
        raise _RefusedError("empty_line", f"the {bounds.noun} is empty")
    if data.startswith(_BOM):
        raise _RefusedError("byte_order_mark", f"the {bounds.noun} starts with a byte order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {error.start + 1} is 0x{data[error.start]:02x}"
        raise _RefusedError("invalid_utf8", f"the {bounds.noun} is not UTF-8: {found}") from None


def _require_shallow(text: str, bounds: _Bounds) -> None:
    depth = 0
    for token in _NESTING.finditer(text):
        depth += _STEP.get(token[0], 0)
        if depth > bounds.max_depth:
            sentence = (
                f"the {bounds.noun} nests arrays and objects deeper than {bounds.max_depth} levels"
            )
            raise _RefusedError("too_deep", sentence)


def _strings(value: Json) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item


# -- what the standard parser asks about ----------------------------------------


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, value in pairs:
        if key in result:
            raise _RefusedError(
                "duplicate_key",
                f"the key {excerpt(key)} stands twice in one object",
                "a key stands twice in one object",
            )
        result[key] = value
    return result


def _integer(literal: str) -> int:
    value = int(_bounded(literal))
    # The canonical encoding holds integers of 64 bits.
    if not -(2**63) <= value < 2**63:
        raise _RefusedError(
            "number_too_long",
            f"the integer {excerpt(literal)} does not fit in 64 bits",
            "an integer does not fit in 64 bits",
        )
    return value


def _real(literal: str) -> float:
    value = float(_bounded(literal))
    return value if math.isfinite(value) else _constant(literal)


def _bounded(literal: str) -> str:
    if len(literal) > MAX_NUMBER_CHARACTERS:
        sentence = f"a number has {len(literal)} characters, more than {MAX_NUMBER_CHARACTERS}"
        raise _RefusedError("number_too_long", sentence)
    return literal


def _constant(literal: str) -> NoReturn:
    raise _RefusedError("nonfinite_number", f"the number {excerpt(literal)} is not finite")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_real, parse_constant=_constant
)


def excerpt(text: str) -> str:
    """A bounded, quoted, pure ASCII rendering of bytes that are not ours."""
    shown = ascii(text[:MAX_EXCERPT_CHARACTERS])
    if len(shown) <= MAX_EXCERPT_CHARACTERS + 2 and len(text) <= MAX_EXCERPT_CHARACTERS:
        return shown
    return f"{shown[:MAX_EXCERPT_CHARACTERS]}..."


def kind_of(value: Json) -> str:
    """What a JSON value is called, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {
        str: "a string",
        int: "a number",
        float: "a number",
        list: "an array",
        dict: "an object",
    }
    return names[type(value)]


# -- fields ---------------------------------------------------------------------


def require_fields(obj: dict[str, Json], required: set[str]) -> None:
    """Require exactly these keys.

    Raises ActionRejectedError missing_field or, where none is missing,
    unknown_field; the sentence names up to five of each.
    """
    missing = required - obj.keys()
    unknown = obj.keys() - required
    parts = [
        f"{word}: {_listed(names)}"
        for word, names in (("missing", missing), ("unknown", unknown))
        if names
    ]
    if parts:
        code = "missing_field" if missing else "unknown_field"
        raise ActionRejectedError(
            code, f"the fields are wrong ({'; '.join(parts)}); send exactly {_listed(required)}"
        )


def _listed(names: set[str]) -> str:
    shown = [excerpt(name) for name in sorted(names)]
    more = f" and {len(shown) - MAX_NAMES} more" if len(shown) > MAX_NAMES else ""
    return ", ".join(shown[:MAX_NAMES]) + more


def require_number_vector(
    value: Json, length: int, low: float, high: float, field: str
) -> list[float]:
    """Read an array of ``length`` numbers within [low, high], bounds included.

    Integers become floats, -0.0 becomes 0.0, subnormals stay.  Raises
    ActionRejectedError wrong_type (booleans and strings are no numbers),
    wrong_length or out_of_bounds, naming the field and the first such element.
    """
    if not isinstance(value, list):
        raise ActionRejectedError(
            "wrong_type", f"{field} is {kind_of(value)}; send an array of {length} numbers"
        )
    if len(value) != length:
        raise ActionRejectedError(
            "wrong_length", f"{field} has {len(value)} elements; send {length} numbers"
        )
    return [_number(item, low, high, f"{field}[{index}]") for index, item in enumerate(value)]


def _number(item: Json, low: float, high: float, place: str) -> float:
    if not _is_number(item):
        raise ActionRejectedError("wrong_type", f"{place} is {kind_of(item)}; send a number")
    # Compared before the conversion, which would round a large integer.
    if not low <= item <= high:
        raise ActionRejectedError(
            "out_of_bounds", f"{place} is {item!r}; send a number from {low!r} to {high!r}"
        )
    return float(item) + 0.0  # -0.0 + 0.0 is 0.0


def _is_number(item: Json) -> TypeGuard[int | float]:
    return isinstance(item, (int, float)) and not isinstance(item, bool)
