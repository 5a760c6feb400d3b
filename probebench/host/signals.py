"""Signals that ask the driver to stop: noted at once, honoured at a safe point."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from probebench.kernel.errors import InterruptedBySignalError

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalWake(Protocol):
    """What whoever waits needs to know of signals."""

    @property
    def descriptor(self) -> int | None:
        """Readable once a signal has come; None where none is awaited."""
        ...

    def check(self) -> None:
        """Raise InterruptedBySignalError if a signal has come."""
        ...


class NoSignals:
    """For waits that no signal ends."""

    descriptor: int | None = None

    def check(self) -> None:
        """Return: none has come."""


class StopSignals:
    """Notes the first SIGINT, SIGTERM or SIGHUP while it is entered.

    A handler only records and wakes, so that no publish is cut short.  A
    signal that was ignored when the driver started (nohup, a background job)
    stays ignored.  SIGPIPE is ignored: a write answers EPIPE instead.  Enter
    it in the main thread, once.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._wake_read, self._wake_write = -1, -1

    def __enter__(self) -> Self:
        self._wake_read, self._wake_write = os.pipe()  # close-on-exec
        self._replace(signal.SIGPIPE, signal.SIG_IGN)
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._replace(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _replace(self, number: signal.Signals, handler: Any) -> None:
        self._before[number] = signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self._first is None:
            self._first = number
            os.write(self._wake_write, b"\0")

    @property
    def descriptor(self) -> int | None:
        """Becomes readable with the first signal and stays so."""
        return self._wake_read

    def check(self) -> None:
        """Raise InterruptedBySignalError if a signal has come."""
        if self._first is not None:
            name = signal.Signals(self._first).name
            sentence = f"stopped by {name}; continue with --resume"
            raise InterruptedBySignalError(sentence, self._first)


def await_signal(wake: SignalWake, within_s: float) -> None:
    """Give a signal that is on its way the chance to arrive, then check."""
    if wake.descriptor is not None:
        poll = select.poll()
        poll.register(wake.descriptor, select.POLLIN)
        poll.poll(within_s * 1000)
    wake.check()
