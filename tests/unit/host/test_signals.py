"""A signal is noted, wakes whoever polls, and is honoured when asked for."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from probebench.host.signals import STOPPING, NoSignals, StopSignals, await_signal
from probebench.kernel.errors import ExitCode, InterruptedBySignalError

CODES = {
    signal.SIGHUP: ExitCode.INTERRUPTED_HUP,
    signal.SIGINT: ExitCode.INTERRUPTED_INT,
    signal.SIGTERM: ExitCode.INTERRUPTED_TERM,
}


def readable(descriptor: int | None) -> bool:
    assert descriptor is not None
    return bool(select.select([descriptor], [], [], 0)[0])


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_is_raised_at_the_next_check_with_its_exit_code(number: signal.Signals) -> None:
    with StopSignals() as stop:
        stop.check()
        assert not readable(stop.descriptor)
        os.kill(os.getpid(), number)
        assert readable(stop.descriptor)
        with pytest.raises(InterruptedBySignalError, match=f"stopped by {number.name}") as caught:
            stop.check()
    assert caught.value.interrupted_code is CODES[number]


def test_the_first_signal_counts_and_stays() -> None:
    with StopSignals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(2):
            with pytest.raises(InterruptedBySignalError, match="SIGTERM"):
                stop.check()


def test_handlers_are_restored() -> None:
    watched = (*STOPPING, signal.SIGPIPE)
    before = [signal.getsignal(number) for number in watched]
    with StopSignals():
        assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in watched] == before


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            stop.check()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_on_its_way_is_awaited() -> None:
    with StopSignals() as stop:
        await_signal(stop, 0.0)
        program = "import os, signal; os.kill(os.getppid(), signal.SIGHUP)"
        child = subprocess.Popen([sys.executable, "-c", program])
        with child, pytest.raises(InterruptedBySignalError, match="SIGHUP"):
            await_signal(stop, 60.0)


def test_where_no_signal_is_awaited_nothing_is_waited_for() -> None:
    await_signal(NoSignals(), 3600.0)
