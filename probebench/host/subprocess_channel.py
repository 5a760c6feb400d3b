"""Clients that the driver starts: one process for all asks, or one an ask."""

from __future__ import annotations

import errno
import time

from probebench.host.channel import (
    FAULTS,
    HANGUP_GRACE_S,
    Clock,
    LineExchange,
    Received,
    SystemClock,
)
from probebench.host.client_process import EXIT_GRACE_S, ClientCommand, ClientProcess
from probebench.host.pump import WRITE_BYTES, End, Ends, Pump, WholeOutput
from probebench.host.signals import SignalWake, await_signal
from probebench.kernel.episode import Fault, FaultKind
from probebench.kernel.errors import HostError, OperatorError

__all__ = ["ClientCommand", "PerAskClient", "SharedClient"]

CANNOT_START = 127  # what a shell answers

# What the machine lacks, as opposed to what is wrong with the command.
SCARCE = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


class SharedClient(LineExchange):
    """One process that answers every ask of its port, line by line.

    Its death, or a pipe that it closes, ends the input: a recorded fault, and
    no error of the driver's.  A line that it wrote before counts.
    """

    def __init__(
        self, command: ClientCommand, port: str, wake: SignalWake, clock: Clock | None = None
    ) -> None:
        """Start the process.  Raises OperatorError naming the command, HostError."""
        try:
            self._process = ClientProcess(command, port)
        except OSError as error:
            _require_resources(error)
            sentence = f"the client {command.argv[0]!r} cannot be started: {error.strerror}"
            raise OperatorError(sentence) from error
        super().__init__(_ends(self._process), wake, SystemClock() if clock is None else clock)

    def exchange(self, message: bytes, deadline_s: float) -> Received:
        """As LineExchange does; raises SandboxUnavailableError besides."""
        received = super().exchange(message, deadline_s)
        if received.fault is not None and received.fault.kind is FaultKind.EOF:
            self._process.require_begun()
        return received

    @property
    def last_words(self) -> str:
        """The end of its standard error: at most 8 KiB, none with a stderr_path."""
        return self._process.last_words

    def close(self) -> None:
        """End all that it started; see ClientProcess.end for how long it takes."""
        self._process.end(EXIT_GRACE_S)


class PerAskClient:
    """A fresh process for each ask: one line in, its whole output back, exit.

    The answer is the exact bytes of its standard output, at most
    MAX_LINE_BYTES: several lines of white space and JSON are one answer, and
    a final newline is not asked for.  Only exit code 0 makes it an answer.
    """

    def __init__(
        self, command: ClientCommand, port: str, wake: SignalWake, clock: Clock | None = None
    ) -> None:
        self._command = command
        self._port = port
        self._wake = wake
        self._clock = SystemClock() if clock is None else clock
        self.last_words = ""  # of the last process, at most 8 KiB

    def exchange(self, message: bytes, deadline_s: float) -> Received:
        """Start the command, give it one message, await its output and exit.

        A command that cannot be started is an adapter fault with exit code
        127, one that exits with N the same with N, one that signal N killed
        the same with 128 + N.  The deadline covers all of it, and what is
        left of the process group is killed.
        Raises HostError, InterruptedBySignalError.
        """
        started = self._clock.monotonic()
        deadline = time.monotonic() + deadline_s
        try:
            process = ClientProcess(self._command, self._port)
        except OSError as error:
            _require_resources(error)
            elapsed_s = self._clock.monotonic() - started
            return Received(None, Fault(FaultKind.ADAPTER, CANNOT_START), b"", elapsed_s)
        output = WholeOutput()
        try:
            end = self._run(process, message, output, deadline)
            # Ending what is left is the driver's own time.
            elapsed_s = self._clock.monotonic() - started
        finally:
            # Its time is over, or it has exited: nothing to wait for.
            exit_code = process.end(0.0)
            self.last_words = process.last_words
        fault = self._fault(end, exit_code)
        if fault is None:
            return Received(output.received(), None, b"", elapsed_s)
        return Received(None, fault, output.received(), elapsed_s)

    def close(self) -> None:
        """Nothing outlives an exchange."""

    def _run(
        self, process: ClientProcess, message: bytes, output: WholeOutput, deadline: float
    ) -> End:
        ends = _ends(process)
        ends.done_writing = process.close_input
        end = Pump(ends, self._wake, message).run(output, deadline)
        if end is End.EOF and not process.exits_before(deadline, self._wake):
            return End.TIMEOUT
        if end is End.EOF:
            process.require_begun()
        return end

    def _fault(self, end: End, exit_code: int) -> Fault | None:
        if end is not End.EOF:
            return Fault(FAULTS[end])
        if exit_code > 128:
            # Whatever killed it may be about to stop the driver too.
            await_signal(self._wake, HANGUP_GRACE_S)
        return Fault(FaultKind.ADAPTER, exit_code) if exit_code else None


def _ends(process: ClientProcess) -> Ends:
    aside = None if process.aside is None else (process.aside, process.drain)
    return Ends(
        process.source, process.sink, _gone, _failed, aside, WRITE_BYTES, exited=process.exited
    )


def _gone(error: OSError) -> None:
    if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
        _failed(error)


def _failed(error: OSError) -> None:
    raise HostError(f"the client's pipe failed: {error.strerror}") from error


def _require_resources(error: OSError) -> None:
    if error.errno in SCARCE:
        raise HostError(f"no process can be started: {error.strerror}") from error
