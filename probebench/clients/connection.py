"""JSON lines with the driver: one message in, one action out."""

from __future__ import annotations

import os
import sys
from typing import IO

import orjson

from probebench.kernel.canonical import Json, encode


class DriverGoneError(EOFError):
    """The driver closed the channel: it stopped, or was interrupted."""


class Connection:
    """A pair of binary streams that carry one JSON object a line."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader = reader
        self._writer = writer

    def receive(self) -> dict[str, Json]:
        """Wait for the next message.  Raises DriverGoneError at the end."""
        line = self._reader.readline()
        if not line.endswith(b"\n"):
            raise DriverGoneError(
                "the driver closed the channel; resume the session and start again"
            )
        message: dict[str, Json] = orjson.loads(line)
        return message

    def send(self, action: Json) -> None:
        """Send one action, encoded.  Raises ValueError for numbers that are not finite."""
        self.send_line(encode(action))

    def send_line(self, line: bytes) -> None:
        """Send exact bytes, newline included."""
        try:
            self._writer.write(line)
            self._writer.flush()
        except BrokenPipeError:
            raise DriverGoneError(
                "the driver closed the channel; resume the session and start again"
            ) from None


def standard_streams() -> Connection:
    """Take standard input and output for the protocol alone.

    From here on whatever prints goes to standard error, so that a stray
    ``print`` in an agent or in a library does no harm.
    """
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Printed before, but still in Python's buffer: no action either.
    sys.stdout.flush()
    return Connection(reader, writer)
