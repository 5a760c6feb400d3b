"""The driver's own standard streams as a channel, and what a channel gives."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from dataclasses import dataclass
from typing import NoReturn, Protocol

from probebench.host.pump import End, Ends, Pump
from probebench.host.signals import SignalWake, await_signal
from probebench.host.standard_streams import is_open
from probebench.kernel.episode import Fault, FaultKind
from probebench.kernel.errors import HostError
from probebench.kernel.framing import LineBuffer

# How long a hang-up, or the signal of a shutdown, may lag behind the end of
# input that it causes.
HANGUP_GRACE_S = 0.25

FAULTS = {
    End.EOF: FaultKind.EOF,
    End.OVERSIZE: FaultKind.OVERSIZE,
    End.TIMEOUT: FaultKind.TIMEOUT,
}


class Clock(Protocol):
    """Monotonic seconds, for durations that are recorded.

    Deadlines never read it: a test may give a clock that stands still.
    """

    def monotonic(self) -> float:
        """Seconds since an arbitrary instant."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary instant."""
        return time.monotonic()


@dataclass(frozen=True)
class Received:
    """What came of an exchange: a line, or a fault in its place.

    line: the exact bytes, newline included; None with a fault.
    partial: with a fault, what had come of the answer.
    elapsed_s: from the first byte out to the end, on the recorded clock.
    """

    line: bytes | None
    fault: Fault | None
    partial: bytes
    elapsed_s: float


class LineExchange:
    """Lines over a pair of descriptors; what both kinds of stream share."""

    def __init__(self, ends: Ends, wake: SignalWake, clock: Clock) -> None:
        self._ends = ends
        self._wake = wake
        self._clock = clock
        self._lines = LineBuffer()

    def exchange(self, message: bytes, deadline_s: float) -> Received:
        """Send one message and receive one line.

        Both directions move at once under one deadline for the whole.  A line
        that is complete before the message has been taken is the answer once
        the rest is taken; if that does not happen, the exchange times out and
        the line is its ``partial``.  Input that ends within a line is EOF.
        Raises HostError, InterruptedBySignalError.
        """
        started = self._clock.monotonic()
        deadline = time.monotonic() + deadline_s
        end = Pump(self._ends, self._wake, message).run(self._lines, deadline)
        elapsed_s = self._clock.monotonic() - started
        if end is End.ANSWERED:
            return Received(self._lines.take(), None, b"", elapsed_s)
        if end is End.EOF:
            await_signal(self._wake, HANGUP_GRACE_S)
        partial = self._lines.take() or self._lines.partial()
        return Received(None, Fault(FAULTS[end]), partial, elapsed_s)

    def send(self, message: bytes, deadline_s: float) -> bool:
        """Send a message that nothing answers; what comes meanwhile is dropped.

        Returns whether it was taken in full.  Raises as ``exchange``.
        """
        deadline = time.monotonic() + deadline_s
        return Pump(self._ends, self._wake, message).deliver(deadline)


class StreamChannel(LineExchange):
    """A channel over two descriptors that the driver was given.

    They stay in the mode they have: O_NONBLOCK would reach the shell that
    shares them.  No write is longer than what a ready pipe takes at once.
    Two processes that read or write the other ends besides could still make
    a ready descriptor block; the driver expects to have them for itself.
    """

    def __init__(
        self, source: int, sink: int, wake: SignalWake, clock: Clock | None = None
    ) -> None:
        """source: readable, lines come in; sink: writable, messages go out.

        The channel closes both.
        """
        ends = Ends(source, sink, self._output_lost, self._input_failed)
        super().__init__(ends, wake, SystemClock() if clock is None else clock)
        self._descriptors = [source, sink]

    def close(self) -> None:
        """Close both descriptors."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _output_lost(self, error: OSError) -> NoReturn:
        await_signal(self._wake, HANGUP_GRACE_S)
        raise HostError(
            f"the driver's standard output is lost ({error.strerror}); continue with --resume"
        ) from error

    def _input_failed(self, error: OSError) -> NoReturn:
        await_signal(self._wake, HANGUP_GRACE_S)
        raise HostError(
            f"the driver's standard input failed ({error.strerror}); continue with --resume"
        ) from error


def claim_standard_streams() -> tuple[int, int]:
    """Take standard input and output away from everything but the channel.

    Returns private close-on-exec descriptors of both.  Afterwards whatever
    any library prints goes to standard error, and whatever reads finds
    nothing.  Raises HostError where one of the two is not open.
    """
    source, sink = _private(0, "input"), _private(1, "output")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if is_open(2) else nothing, 1)
    # Without a standard error the open above took its place; it stays there,
    # or the next file that is opened would receive what is printed.
    if nothing > 2:
        os.close(nothing)
    else:
        os.set_inheritable(nothing, True)
    # Printed before, but still in Python's buffer: no protocol message either.
    sys.stdout.flush()
    return source, sink


def _private(descriptor: int, word: str) -> int:
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError as error:
        raise HostError(
            f"standard {word} is closed; give the driver one, or a client with --agent"
        ) from error
