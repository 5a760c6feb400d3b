"""The one I/O loop: a message out, an answer in, both at once, one deadline."""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from probebench.host.signals import SignalWake
from probebench.kernel.errors import HostError
from probebench.kernel.framing import MAX_LINE_BYTES, LineBuffer

# A descriptor in blocking mode takes PIPE_BUF bytes whenever poll says that it
# is writable; more could block.
BLOCKING_WRITE_BYTES = 4096
WRITE_BYTES = 65_536
READ_AHEAD_BYTES = 1024 * 1024
POLL_S = 60.0  # poll takes its time in a C int of milliseconds


class End(Enum):
    """How an exchange ended."""

    ANSWERED = "answered"
    EOF = "eof"
    OVERSIZE = "oversize"
    TIMEOUT = "timeout"


class Intake(Protocol):
    """Where incoming bytes go, and whether they make an answer yet."""

    def want(self) -> int:
        """How many bytes may be read now."""
        ...

    def feed(self, data: bytes) -> None:
        """Take in bytes."""
        ...

    @property
    def complete(self) -> bool:
        """Whether there is an answer before the input ends."""
        ...

    @property
    def oversize(self) -> bool:
        """Whether there is more than an answer may have."""
        ...

    @property
    def buffered(self) -> int:
        """How many bytes are held."""
        ...


class WholeOutput:
    """An answer that ends where the output does, however many lines it has."""

    complete = False

    def __init__(self) -> None:
        self._received = bytearray()

    def want(self) -> int:
        """Up to one byte past the bound of a line."""
        return MAX_LINE_BYTES + 1 - len(self._received)

    def feed(self, data: bytes) -> None:
        """Take in bytes."""
        self._received += data

    @property
    def oversize(self) -> bool:
        """Whether there are more bytes than a line may have."""
        return len(self._received) > MAX_LINE_BYTES

    @property
    def buffered(self) -> int:
        """How many bytes are held."""
        return len(self._received)

    def received(self) -> bytes:
        """All bytes, exactly as they came."""
        return bytes(self._received)


@dataclass
class Ends:
    """The descriptors of an exchange.

    source: answers come from it.  sink: messages go to it; None once it is
    lost.  aside: (descriptor, consumer) of a stream that is drained besides;
    the consumer reads once and returns False at its end.
    write_bytes: the most to write at once.  done_writing: called once the
    message is out or the sink lost; None where more messages follow.
    sink_lost, source_failed: called with the error; what they raise ends the
    exchange, and otherwise the sink is lost, the source at its end.
    exited: readable once the process at the other ends is gone; it has written
    all that it ever will, though a child of its may still hold the pipes.  Only
    for a source that does not block.
    """

    source: int
    sink: int | None
    sink_lost: Callable[[OSError], None]
    source_failed: Callable[[OSError], None]
    aside: tuple[int, Callable[[int], bool]] | None = None
    write_bytes: int = BLOCKING_WRITE_BYTES
    done_writing: Callable[[], None] | None = None
    exited: int | None = None


class Pump:
    """One exchange over some ends."""

    def __init__(self, ends: Ends, wake: SignalWake, message: bytes) -> None:
        self._ends = ends
        self._wake = wake
        self._rest = memoryview(message)
        self._source_ended = False

    def run(self, intake: Intake, deadline: float) -> End:
        """Move bytes until the answer is in and the message out.

        deadline: of the whole exchange, on time.monotonic; it is never moved.
        An answer that comes before its message has been taken in full counts
        once the rest is taken too; oversize counts at once.  Raises what the
        ends' callbacks and the wake's check raise.
        """
        while (end := self._ended(intake)) is None:
            self._wake.check()
            # What came while nobody looked, before the deadline or not, is
            # read once more; then the deadline has passed.
            expired = time.monotonic() >= deadline
            self._serve(intake, deadline)
            if expired and self._ended(intake) is None:
                return End.EOF if self._source_ended else End.TIMEOUT
        return end

    def deliver(self, deadline: float) -> bool:
        """Send the message and drop what comes; whether it was taken in full."""
        dropped = _Dropped()
        while self._rest and self._ends.sink is not None:
            self._wake.check()
            if time.monotonic() >= deadline:
                return False
            self._serve(dropped, deadline)
        return not self._rest

    def _ended(self, intake: Intake) -> End | None:
        if intake.oversize:
            return End.OVERSIZE
        if self._undelivered():
            return None
        if intake.complete:
            return End.ANSWERED
        return End.EOF if self._source_ended else None

    def _undelivered(self) -> bool:
        return bool(self._rest) and self._ends.sink is not None

    def _serve(self, intake: Intake, deadline: float) -> None:
        ready = self._poll(intake, deadline)
        ends = self._ends
        if ends.source in ready and not self._source_ended:
            self._read(intake)
        if ends.aside is not None and ends.aside[0] in ready:
            descriptor, consume = ends.aside
            if not consume(descriptor):
                ends.aside = None
        if ends.sink is not None and ends.sink in ready:
            self._write(ends.sink)
        if ends.exited in ready and ends.source not in ready:
            self._read_last(intake)

    def _poll(self, intake: Intake, deadline: float) -> set[int]:
        poll = select.poll()
        if self._wants_input(intake):
            poll.register(self._ends.source, select.POLLIN)
        if self._ends.sink is not None and self._rest:
            poll.register(self._ends.sink, select.POLLOUT)
        if self._ends.aside is not None:
            poll.register(self._ends.aside[0], select.POLLIN)
        if self._ends.exited is not None and not self._source_ended:
            poll.register(self._ends.exited, select.POLLIN)
        if self._wake.descriptor is not None:
            poll.register(self._wake.descriptor, select.POLLIN)
        left_s = min(max(0.0, deadline - time.monotonic()), POLL_S)
        events = poll.poll(math.ceil(left_s * 1000))
        if any(event & select.POLLNVAL for _, event in events):
            raise HostError("a descriptor of the channel was closed by something else")
        return {descriptor for descriptor, _ in events}

    def _wants_input(self, intake: Intake) -> bool:
        # While a message is stuck, what the client sends ahead is taken in, or
        # both would wait for the other to read.
        ahead = bool(self._rest) and intake.buffered < READ_AHEAD_BYTES
        return not self._source_ended and intake.want() > 0 and (ahead or not intake.complete)

    def _read(self, intake: Intake) -> None:
        try:
            data = os.read(self._ends.source, intake.want())
        except BlockingIOError:
            return
        except OSError as error:
            self._ends.source_failed(error)
            data = b""
        if data:
            intake.feed(data)
        else:
            self._source_ended = True

    def _read_last(self, intake: Intake) -> None:
        # It may have written between the poll of its pipe and its exit.
        before = intake.buffered
        self._read(intake)
        if intake.buffered == before:
            self._source_ended, self._ends.sink = True, None

    def _write(self, sink: int) -> None:
        try:
            written = os.write(sink, self._rest[: self._ends.write_bytes])
        except BlockingIOError:
            return
        except OSError as error:
            self._ends.sink_lost(error)
            self._ends.sink = None
        else:
            self._rest = self._rest[written:]
        if self._ends.done_writing is not None and not self._undelivered():
            self._ends.sink = None
            self._ends.done_writing()


class _Dropped(LineBuffer):
    """Takes everything in and keeps nothing."""

    def want(self) -> int:
        """As much as a pipe holds."""
        return WRITE_BYTES

    def feed(self, data: bytes) -> None:
        """Drop the bytes."""
        del data
