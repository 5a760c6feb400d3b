"""One case for each row of the table in docs/protocol.md, by the row's first cell."""

from __future__ import annotations

import json
import math
from typing import Any

from probebench.kernel.canonical import encode
from probebench.kernel.framing import MAX_LINE_BYTES
from probebench.kernel.turn import request_id
from tests.environments.optical.protocol_session import (
    BOUND_NM,
    PROBE_OPD_NM,
    SHORT_S,
    ZERO_OPD_NM,
    Case,
    Line,
    Message,
    Program,
    Wire,
    action,
    estimates,
    exposes,
    submits,
)
from tests.rigs import NONCE

PAUSE_S = 0.01
REST = [0.0] * 5


def changed(**fields: Any) -> Line:
    """An exposure of which some fields are others."""
    return lambda message: encode(action(message, "expose", command_opd_nm=PROBE_OPD_NM) | fields)


def without(*names: str) -> Line:
    """An exposure that lacks some fields."""

    def line(message: Message) -> bytes:
        full = action(message, "expose", command_opd_nm=PROBE_OPD_NM)
        return encode({key: value for key, value in full.items() if key not in names})

    return line


def spelled(coefficient: str) -> Line:
    """An exposure whose first coefficient is spelled like this."""

    def line(message: Message) -> bytes:
        text = json.dumps(action(message, "expose", command_opd_nm=["@", *REST]))
        return text.replace('"@"', coefficient).encode() + b"\n"

    return line


def edited(old: bytes, new: bytes) -> Line:
    """An exposure with one piece of its bytes replaced."""

    def line(message: Message) -> bytes:
        data = exposes()(message)
        if data.count(old) != 1:
            raise ValueError(f"{old!r} does not stand once in {data!r}")
        return data.replace(old, new)

    return line


def wrapped(before: bytes, after: bytes) -> Line:
    """An exposure with bytes before and after its object."""
    return lambda message: before + exposes()(message).rstrip(b"\n") + after


def fixed(data: bytes) -> Line:
    """These bytes, whatever the request."""
    return lambda _message: data


def padded(size: int) -> Line:
    """An exposure with spaces, of ``size`` bytes with its newline."""
    return lambda message: exposes()(message).rstrip(b"\n").ljust(size - 1) + b"\n"


def with_identifier(index: int) -> Line:
    """An exposure that names the request of an index, counted from 0."""
    return changed(request_id=request_id(NONCE, index))


# -- clients at their pipes ------------------------------------------------------------


def answers_early(wire: Wire) -> None:
    wire.write(exposes()({"request_id": request_id(NONCE, 0)}))
    wire.read()
    wire.write(submits(wire.read()))
    wire.read()


def sends_and_submits(line: Line) -> Program:
    def program(wire: Wire) -> None:
        wire.write(line(wire.read()))
        wire.write(submits(wire.read()))
        wire.read()

    return program


def sends_two_lines(wire: Wire) -> None:
    line = exposes()(wire.read())
    wire.write(line + line)
    wire.read()
    wire.write(submits(wire.read()))
    wire.read()


def goes_on_after(line: Line) -> Program:
    def program(wire: Wire) -> None:
        request = wire.read()
        wire.write(line(request) + exposes()(request) + b"anything\n")
        wire.read()

    return program


def sends(line: Line) -> Program:
    def program(wire: Wire) -> None:
        wire.write(line(wire.read()))
        wire.read()

    return program


def sends_and_ends(line: Line) -> Program:
    def program(wire: Wire) -> None:
        wire.write(line(wire.read()))
        wire.end()
        wire.read()

    return program


def drips(wire: Wire) -> None:
    wire.read()
    while not wire.over.wait(PAUSE_S):
        wire.write(b" ")


def floods(wire: Wire) -> None:
    wire.read()
    while not wire.over.is_set():
        wire.write(b"x" * 4096)


def never_reads(wire: Wire) -> None:
    wire.write(exposes()({"request_id": request_id(NONCE, 0)}))
    wire.over.wait()


SHORT = {"deadline_s": SHORT_S}
HALF = edited(b'"}\n', b"")
LAST = {"requests": 1}
ABOVE = math.nextafter(BOUND_NM, math.inf)

ACCEPTED = {
    "an exposure": Case(command=PROBE_OPD_NM),
    "an estimate after two distinct commands": Case(estimates, (exposes(),)),
    "an estimate without a new image since the last": Case(estimates, (exposes(), estimates)),
    "a submission": Case(submits),
    "a line that ends in CR LF": Case(wrapped(b"", b"\r\n"), command=PROBE_OPD_NM),
    "spaces and tabs before, within and after the object": Case(
        lambda message: wrapped(b" \t", b" \t\n")(message).replace(b",", b" ,\t"),
        command=PROBE_OPD_NM,
    ),
    "integers as coefficients": Case(spelled("80"), command=PROBE_OPD_NM),
    "-0.0 as a coefficient": Case(spelled("-0.0"), command=ZERO_OPD_NM),
    "a subnormal coefficient (5e-324)": Case(spelled("5e-324"), command=[5e-324, *REST]),
    "a coefficient that underflows (1e-999)": Case(spelled("1e-999"), command=ZERO_OPD_NM),
    "coefficients exactly at both bounds": Case(
        exposes([BOUND_NM, -BOUND_NM, 0, 0, 0, 0]),
        command=[BOUND_NM, -BOUND_NM, 0.0, 0.0, 0.0, 0.0],
    ),
    'an escaped key (`"\\u0061ction"`)': Case(edited(b'"action"', b'"\\u0061ction"')),
    "an action of 16,384 bytes": Case(
        program=sends_and_submits(padded(MAX_LINE_BYTES)), command=PROBE_OPD_NM
    ),
    "a line written before the request is read": Case(program=answers_early),
}

REJECTED = {
    "an empty line": Case(fixed(b"\n")),
    "a line of white space with CR LF": Case(fixed(b" \t \r\n")),
    "a byte order mark": Case(wrapped(b"\xef\xbb\xbf", b"\n")),
    "invalid UTF-8 in a string": Case(edited(b'"expose"', b'"exp\xf6se"')),
    "UTF-16": Case(lambda message: exposes()(message).decode().strip().encode("utf-16") + b"\n"),
    "text that is not JSON": Case(fixed(b"expose [80, 0, 0, 0, 0, 0]\n")),
    "a NUL byte after the object": Case(wrapped(b"", b"\0\n")),
    "two actions in one line": Case(lambda message: exposes()(message).strip() * 2 + b"\n"),
    "an object cut off before its end": Case(edited(b'"}\n', b'"\n')),
    "arrays nested 33 deep": Case(fixed(b"[" * 33 + b"]" * 33 + b"\n")),
    "10,000 opening brackets": Case(fixed(b"[" * 10_000 + b"\n")),
    "a duplicate key": Case(edited(b'{"action"', b'{"action":"expose","action"')),
    "a duplicate key, once escaped": Case(
        edited(b'{"action"', b'{"\\u0061ction":"expose","action"')
    ),
    "NaN as a coefficient": Case(spelled("NaN")),
    "-Infinity as a coefficient": Case(spelled("-Infinity")),
    "1e999 as a coefficient": Case(spelled("1e999")),
    "a number of 10,000 digits": Case(spelled("1" * 10_000)),
    "an integer beyond 64 bits": Case(spelled(str(2**63))),
    "a lone surrogate in a string": Case(edited(b'"expose"', b'"\\ud800"')),
    "an array, not an object": Case(lambda message: b"[" + exposes()(message).strip() + b"]\n"),
    "no field `action`": Case(without("action")),
    "an exposure without a command": Case(without("command_opd_nm")),
    "a missing field and an unknown one": Case(
        lambda message: without("protocol")(message).replace(b"{", b'{"note":0,')
    ),
    "an unknown field": Case(changed(note="")),
    "an estimate with a command": Case(changed(action="estimate"), (exposes(),)),
    "an action of another name": Case(changed(action="measure")),
    "the name of an action in capitals": Case(changed(action="EXPOSE")),
    "an action that is no string": Case(changed(action=["expose"])),
    "a number as request identifier": Case(changed(request_id=1)),
    "null as protocol": Case(changed(protocol=None)),
    "an object as command": Case(changed(command_opd_nm={"0": 80})),
    "`true` as a coefficient": Case(exposes([True, *REST])),
    '`"80"` as a coefficient': Case(exposes(["80", *REST])),
    "null as a coefficient": Case(exposes([None, *REST])),
    "an array as a coefficient": Case(exposes([[80.0], *REST])),
    "5 coefficients": Case(exposes([80.0] * 5)),
    "7 coefficients": Case(exposes([80.0] * 7)),
    "a coefficient one ulp above the bound": Case(exposes([ABOVE, *REST])),
    "a coefficient one ulp below the negative bound": Case(exposes([*REST, -ABOVE])),
    "a submission out of bounds": Case(changed(action="submit", command_opd_nm=[1e3, *REST])),
    "another protocol": Case(changed(protocol="probebench.agent.v2")),
    "the identifier of an earlier request": Case(with_identifier(0), (exposes(),)),
    "an action repeated byte for byte": Case(
        lambda _message: exposes()({"request_id": request_id(NONCE, 0)}), (exposes(),)
    ),
    "the second of two lines sent at once": Case(program=sends_two_lines, turn=2),
    "the identifier of a future request": Case(with_identifier(1)),
    "the current identifier in capitals": Case(changed(request_id=request_id(NONCE, 0).upper())),
    "an exposure beyond the budget": Case(exposes(), (exposes(),), config={"exposures": 2}),
    "an estimate before any exposure of the agent's": Case(estimates),
    "an estimate after exposures under 0.0 and -0.0 alone": Case(
        estimates, (exposes(ZERO_OPD_NM), exposes([-0.0] * 6))
    ),
    "an estimate beyond the allowance": Case(
        estimates, (exposes(), estimates), config={"estimates": 1}
    ),
    "an estimate in the direct track": Case(
        estimates, (exposes(),), config={"track": "direct_action"}
    ),
}

ENDING = {
    "the last allowed request, an exposure": Case(config=LAST),
    "the last allowed request, an estimate": Case(estimates, (exposes(),), config={"requests": 2}),
    "the last allowed request, a line that is rejected": Case(fixed(b"{}\n"), config=LAST),
    "the last allowed request, a submission": Case(submits, config=LAST),
    "anything after a submission": Case(program=goes_on_after(submits), turn=2),
    "anything after the last allowed request": Case(
        program=goes_on_after(exposes()), turn=2, config=LAST
    ),
    "a line of 16,385 bytes": Case(program=sends(padded(MAX_LINE_BYTES + 1))),
    "a flood without newline": Case(program=floods),
    "no line at all": Case(program=sends(fixed(b"")), config=SHORT),
    "half a line, then silence": Case(program=sends(HALF), config=SHORT),
    "a line that drips in byte by byte beyond the deadline": Case(program=drips, config=SHORT),
    "an action from a client that never reads": Case(program=never_reads, config=SHORT),
    "the end of input between lines": Case(program=sends_and_ends(fixed(b""))),
    "the end of input within a line": Case(program=sends_and_ends(HALF)),
    "a whole action without newline, then the end of input": Case(
        program=sends_and_ends(wrapped(b"", b""))
    ),
    "an agent whose process exits": Case(argv="-c pass"),
}

CASES: dict[str, Case] = {**ACCEPTED, **REJECTED, **ENDING}
