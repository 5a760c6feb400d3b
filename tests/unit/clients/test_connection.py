"""A client's end of the channel: whole lines, exact bytes, and nothing else on it."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from probebench.clients import Connection, DriverGoneError


def connected(received: bytes) -> tuple[Connection, io.BytesIO]:
    sent = io.BytesIO()
    return Connection(io.BytesIO(received), sent), sent


def test_messages_are_received_one_a_line() -> None:
    connection, _ = connected(b'{"a":1}\n{"b":[2.5]}\n')
    assert [connection.receive(), connection.receive()] == [{"a": 1}, {"b": [2.5]}]


@pytest.mark.parametrize("received", [b"", b'{"a":1}'])
def test_a_stream_that_ends_even_within_a_message_means_that_the_driver_is_gone(
    received: bytes,
) -> None:
    connection, _ = connected(received)
    with pytest.raises(DriverGoneError, match="resume"):
        connection.receive()


def test_a_driver_that_is_gone_is_an_end_of_file_for_agents_that_know_no_better() -> None:
    assert issubclass(DriverGoneError, EOFError)


def test_an_action_is_sent_as_one_canonical_line() -> None:
    connection, sent = connected(b"")
    connection.send({"b": 1.0, "a": [True, None]})
    assert sent.getvalue() == b'{"a":[true,null],"b":1.0}\n'


def test_exact_bytes_are_sent_as_they_are() -> None:
    connection, sent = connected(b"")
    connection.send_line(b" \xff\r\n")
    assert sent.getvalue() == b" \xff\r\n"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_never_sent(value: float) -> None:
    connection, sent = connected(b"")
    with pytest.raises(ValueError, match="not finite"):
        connection.send({"command_opd_nm": [value]})
    assert sent.getvalue() == b""


def test_sending_to_a_driver_that_is_gone_says_so() -> None:
    source, sink = os.pipe()
    os.close(source)
    with os.fdopen(sink, "wb", buffering=0) as writer, pytest.raises(DriverGoneError):
        Connection(io.BytesIO(), writer).send({})


PROGRAM = """
import os, subprocess, sys
print("before")
from probebench.clients import standard_streams
connection = standard_streams()
print("after")
os.write(1, b"from a library\\n")
subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
connection.send({"received": connection.receive()})
"""


def test_once_connected_whatever_prints_goes_to_standard_error() -> None:
    # Unbuffered, "before" would be out before anyone could hold it back.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=b'{"turn":1}\n',
        capture_output=True,
        check=True,
        env=environment,
    )
    assert ran.stdout == b'{"received":{"turn":1}}\n'
    printed = {b"before", b"after", b"from a library", b"from a child"}
    assert set(ran.stderr.splitlines()) == printed
