"""The driver's own streams as a channel, against real programs over real pipes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from probebench.host import channel as channels
from probebench.host.channel import StreamChannel
from probebench.host.pump import End, Intake, Pump
from probebench.host.signals import NoSignals, StopSignals
from probebench.kernel.episode import Fault, FaultKind
from probebench.kernel.errors import HostError, InterruptedBySignalError
from probebench.kernel.framing import MAX_LINE_BYTES
from tests.process.programs import ECHOES_LENGTHS, READY, streams

LONG_S = 60.0  # far longer than anything here takes
SHORT_S = 0.3

MESSAGE = b"x" * 200_000 + b"\n"


def kind(fault: Fault | None) -> FaultKind | None:
    return None if fault is None else fault.kind


# -- what comes back ----------------------------------------------------------------


def test_a_message_is_delivered_in_full_and_its_line_received() -> None:
    with streams(ECHOES_LENGTHS) as channel:
        for size in (1, 4096, 65_536, 200_000, 1_000_000):
            received = channel.exchange(b"x" * size + b"\n", LONG_S)
            assert received.line == b"%d\n" % (size + 1)
            assert (received.fault, received.partial) == (None, b"")


def test_what_follows_a_line_is_kept_for_the_next_exchange() -> None:
    with streams("write(b'one\\ntwo\\nthr'); read_line(); write(b'ee\\n')") as channel:
        lines = [channel.exchange(b"", LONG_S).line, channel.exchange(b"", LONG_S).line]
        assert [*lines, channel.exchange(b"go\n", LONG_S).line] == [b"one\n", b"two\n", b"three\n"]


def test_the_longest_line_is_received_and_one_byte_more_is_oversize() -> None:
    program = "write(b'x' * %d + b'\\n'); read_line()"
    with streams(program % (MAX_LINE_BYTES - 1)) as channel:
        line = channel.exchange(b"", LONG_S).line
        assert line is not None
        assert len(line) == MAX_LINE_BYTES
    with streams(program % MAX_LINE_BYTES) as channel:
        received = channel.exchange(b"", LONG_S)
        assert kind(received.fault) is FaultKind.OVERSIZE
        assert len(received.partial) == MAX_LINE_BYTES + 1


def test_a_flood_without_a_newline_is_oversize_though_the_client_never_reads() -> None:
    with streams("while True: write(b'x' * 65536)") as channel:
        received = channel.exchange(MESSAGE, LONG_S)
    assert kind(received.fault) is FaultKind.OVERSIZE
    assert received.partial == b"x" * (MAX_LINE_BYTES + 1)


def test_no_byte_beyond_the_bound_is_taken_from_the_pipe() -> None:
    read, write = os.pipe()
    os.write(write, b"x" * 40_000)
    channel = StreamChannel(os.dup(read), os.open(os.devnull, os.O_WRONLY), NoSignals())
    channel.exchange(b"", LONG_S)
    channel.close()
    os.close(write)
    assert len(os.read(read, 65_536)) == 40_000 - (MAX_LINE_BYTES + 1)
    os.close(read)


def test_half_a_line_and_then_silence_is_a_timeout_with_the_half() -> None:
    with streams(READY + "write(b'half'); time.sleep(600)") as channel:
        assert channel.exchange(b"", LONG_S).line == b"ready\n"
        received = channel.exchange(b"", 1.0)
    assert (received.line, kind(received.fault)) == (None, FaultKind.TIMEOUT)
    assert received.partial == b"half"


@pytest.mark.parametrize("rest", [b"", b'{"whole":"action"}'])
def test_input_that_ends_is_eof_and_an_unterminated_line_no_action(rest: bytes) -> None:
    with streams(f"write({rest!r}); read_line()") as channel:
        received = channel.exchange(b"go\n", LONG_S)
    assert (received.line, kind(received.fault), received.partial) == (None, FaultKind.EOF, rest)


def test_a_line_before_the_end_still_counts() -> None:
    with streams("write(b'last\\n'); read_line()") as channel:
        assert channel.exchange(b"go\n", LONG_S).line == b"last\n"
        assert kind(channel.exchange(b"", LONG_S).fault) is FaultKind.EOF


# -- one deadline ---------------------------------------------------------------------

# Three seconds of a byte at a time, then the newline, for a deadline of one.
DRIPS = READY + "[(write(b'x'), time.sleep(0.05)) for _ in range(60)]; write(b'\\n'); read_line()"


class RearmedPump(Pump):
    """Broken on purpose: every byte gives the client the whole time again."""

    def run(self, intake: Intake, deadline: float) -> End:
        span = deadline - time.monotonic()
        while (end := self._ended(intake)) is None:
            before = intake.buffered
            self._serve(intake, time.monotonic() + span)
            if intake.buffered == before and not self._source_ended:
                return End.TIMEOUT
        return end


def drip() -> FaultKind | None:
    with streams(DRIPS) as channel:
        assert channel.exchange(b"", LONG_S).line == b"ready\n"
        return kind(channel.exchange(b"", 1.0).fault)


def test_a_dripping_client_times_out_at_the_deadline_of_the_whole_line() -> None:
    assert drip() is FaultKind.TIMEOUT


def test_a_timer_that_is_armed_again_lets_a_dripping_client_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "Pump", RearmedPump)
    assert drip() is None


def test_a_line_that_came_while_nobody_looked_counts() -> None:
    read, write = os.pipe()
    os.write(write, b"in time\n")
    channel = StreamChannel(read, os.open(os.devnull, os.O_WRONLY), NoSignals())
    assert channel.exchange(b"", 0.0).line == b"in time\n"
    channel.close()
    os.close(write)


def test_a_recorded_duration_is_of_the_given_clock_and_the_deadline_is_not() -> None:
    class Stopped:
        def monotonic(self) -> float:
            return 7.0

    read, write = os.pipe()
    channel = StreamChannel(read, os.open(os.devnull, os.O_WRONLY), NoSignals(), Stopped())
    received = channel.exchange(b"", 0.01)
    assert (kind(received.fault), received.elapsed_s) == (FaultKind.TIMEOUT, 0.0)
    channel.close()
    os.close(write)


# -- both directions at once -------------------------------------------------------------

TALKS_FIRST = "write(b'{line}' * {count}); write(b'%d\\n' % len(read_line())); read_line()"


def test_a_client_that_sends_before_it_reads_does_not_deadlock() -> None:
    # 150,000 bytes do not fit in a pipe, so the driver must read while it writes.
    program = TALKS_FIRST.format(line="y" * 999 + "\\n", count=150)
    with streams(program) as channel:
        assert channel.exchange(MESSAGE, LONG_S).line == b"y" * 999 + b"\n"
        rest = [channel.exchange(b"", LONG_S).line for _ in range(150)]
    assert rest[-1] == b"%d\n" % len(MESSAGE)


def test_a_pump_that_stops_reading_at_the_first_line_deadlocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class ReadsNothingAhead(Pump):
        def _wants_input(self, intake: Intake) -> bool:
            return not intake.complete and super()._wants_input(intake)

    monkeypatch.setattr(channels, "Pump", ReadsNothingAhead)
    with streams(TALKS_FIRST.format(line="y" * 999 + "\\n", count=150)) as channel:
        assert kind(channel.exchange(MESSAGE, 1.0).fault) is FaultKind.TIMEOUT


def test_seventy_thousand_bytes_of_one_line_are_oversize_not_a_deadlock() -> None:
    with streams(TALKS_FIRST.format(line="y" * 70_000, count=1)) as channel:
        assert kind(channel.exchange(MESSAGE, LONG_S).fault) is FaultKind.OVERSIZE


def test_a_client_that_never_reads_times_out_and_what_it_said_is_kept() -> None:
    with streams("write(b'early\\n'); time.sleep(600)") as channel:
        received = channel.exchange(MESSAGE, 1.0)
    assert (received.line, kind(received.fault)) == (None, FaultKind.TIMEOUT)
    assert received.partial == b"early\n"


def test_lines_without_end_that_are_never_wanted_do_not_fill_the_memory() -> None:
    with streams("while True: write(b'z' * 999 + b'\\n')") as channel:
        received = channel.exchange(MESSAGE, 1.0)
        assert kind(received.fault) is FaultKind.TIMEOUT
        assert channel._lines.buffered <= 1024 * 1024 + MAX_LINE_BYTES


def test_a_farewell_is_sent_and_its_refusal_is_no_error() -> None:
    with streams("os.read(0, 4); write(b'spam\\n' * 50_000); time.sleep(600)") as channel:
        assert channel.send(b"bye\n", LONG_S) is True
        assert channel.send(MESSAGE, SHORT_S) is False


# -- the driver's own output ----------------------------------------------------------------


def test_the_loss_of_the_drivers_output_is_a_host_error_and_no_verdict() -> None:
    with streams("os.close(0); write(b'ready\\n'); time.sleep(600)") as channel:
        assert channel.exchange(b"", LONG_S).line == b"ready\n"
        with pytest.raises(HostError, match="standard output is lost"):
            channel.exchange(b"x\n", LONG_S)
        with pytest.raises(HostError, match="standard output is lost"):
            channel.send(b"x\n", LONG_S)


def test_a_terminal_that_hung_up_is_a_host_error_and_no_verdict() -> None:
    master, slave = os.openpty()
    channel = StreamChannel(slave, os.open(os.devnull, os.O_WRONLY), NoSignals())
    os.close(master)
    # Linux answers EIO or the end of input, by whether the hang-up is complete.
    try:
        fault = channel.exchange(b"", LONG_S).fault
    except HostError as error:
        assert "standard input failed" in str(error)  # noqa: PT017 - one of two right outcomes
    else:
        assert kind(fault) is FaultKind.EOF
    channel.close()


def test_a_stream_that_fails_is_a_host_error_and_no_verdict(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)  # reading it is refused
    channel = StreamChannel(folder, os.open(os.devnull, os.O_WRONLY), NoSignals())
    with pytest.raises(HostError, match="standard input failed"):
        channel.exchange(b"", LONG_S)
    channel.close()
    os.close(os.open(os.devnull, os.O_RDONLY))
    with pytest.raises(HostError, match="closed by something else"):
        channel.exchange(b"", LONG_S)


def test_a_stream_that_its_owner_made_non_blocking_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, refusals = os.write, [BlockingIOError(), BlockingIOError()]

    def refuses_twice(descriptor: int, data: bytes) -> int:
        if refusals:
            raise refusals.pop()
        return write(descriptor, data)

    with streams(ECHOES_LENGTHS) as channel:
        monkeypatch.setattr("probebench.host.pump.os.write", refuses_twice)
        assert channel.exchange(MESSAGE, LONG_S).line == b"%d\n" % len(MESSAGE)
    assert refusals == []


@contextmanager
def shared_pipes() -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Two pipes, and second descriptors of the ends that a shell would share."""
    (read_a, write_a), (read_b, write_b) = os.pipe(), os.pipe()
    yield (read_a, write_b), (write_a, read_b)
    for descriptor in (write_a, read_b):
        os.close(descriptor)


def status_flags(descriptors: list[int]) -> list[int]:
    return [fcntl.fcntl(descriptor, fcntl.F_GETFL) for descriptor in descriptors]


class SetsNonBlocking(StreamChannel):
    """Broken on purpose: the mode reaches whoever shares the stream."""

    def __init__(self, source: int, sink: int, wake: NoSignals) -> None:
        super().__init__(source, sink, wake)
        os.set_blocking(source, False)


@pytest.mark.parametrize(("tested", "clean"), [(StreamChannel, True), (SetsNonBlocking, False)])
def test_the_mode_of_shared_descriptors_stays_as_it_was(
    tested: type[StreamChannel], *, clean: bool
) -> None:
    with shared_pipes() as (ends, others):
        shells = [os.dup(descriptor) for descriptor in ends]
        before = status_flags(shells)
        channel = tested(*ends, NoSignals())
        os.write(others[0], b"answer\n")
        assert channel.exchange(b"question\n", LONG_S).line == b"answer\n"
        channel.close()
        assert (status_flags(shells) == before) is clean
        for descriptor in shells:
            os.close(descriptor)


# -- signals ------------------------------------------------------------------------------------


def test_a_signal_ends_a_wait() -> None:
    with StopSignals() as stop, streams(READY + "time.sleep(600)", stop) as channel:
        assert channel.exchange(b"", LONG_S).line == b"ready\n"
        program = "import os, signal; os.kill(os.getppid(), signal.SIGTERM)"
        with (
            subprocess.Popen([sys.executable, "-c", program]),
            pytest.raises(InterruptedBySignalError, match="SIGTERM"),
        ):
            channel.exchange(b"", LONG_S)


DRIVER = """
import sys
from probebench.host import channel as channels
from probebench.host.channel import StreamChannel, claim_standard_streams
from probebench.host.signals import StopSignals
from probebench.kernel.errors import InterruptedBySignalError
channels.HANGUP_GRACE_S = float(sys.argv[1])
with StopSignals() as stop:
    channel = StreamChannel(*claim_standard_streams(), stop)
    try:
        received = channel.exchange(b"question\\n", 60.0)
    except InterruptedBySignalError as error:
        sys.exit(error.interrupted_code)
    print(received.fault.kind.value, file=sys.stderr)
    sys.exit(1)
"""


@contextmanager
def driver_without_input(grace_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """A driver whose input has just ended."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(grace_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"question\n"
        driver.stdin.close()
        yield driver


def test_a_hang_up_wins_over_the_end_of_input_that_it_causes() -> None:
    with driver_without_input(grace_s=30.0) as driver:
        time.sleep(0.05)
        driver.send_signal(signal.SIGHUP)
    assert driver.returncode == 129


def test_without_the_grace_the_end_of_input_would_be_a_verdict_before_the_hang_up() -> None:
    with driver_without_input(grace_s=0.0) as driver:
        assert driver.stderr is not None
        assert driver.stderr.readline() == b"eof\n"
    assert driver.returncode == 1


def test_an_exchange_goes_on_through_signals_that_do_not_stop_it() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        with streams("time.sleep(0.3)\n" + ECHOES_LENGTHS) as channel:
            assert channel.exchange(b"x" * 1_000_000 + b"\n", LONG_S).line == b"1000001\n"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen


# -- the claim -------------------------------------------------------------------------------------

CLAIMS = """
import os, subprocess, sys
print("before, buffered")
from probebench.host.channel import StreamChannel, claim_standard_streams
from probebench.host.signals import NoSignals
channel = StreamChannel(*claim_standard_streams(), NoSignals())
print("printed by a library", flush=True)
os.write(1, b"written by a library in C\\n")
subprocess.run(["sh", "-c", "echo by a child; ls /proc/self/fd | wc -l >&2"], check=True)
assert sys.stdin.read() == ""
assert channel.exchange(b"protocol\\n", 60.0).line == b"answer\\n"
print("after", flush=True)
"""


def claim(*shell: str) -> subprocess.CompletedProcess[bytes]:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    program = [*shell, sys.executable, "-c", CLAIMS]
    return subprocess.run(program, input=b"answer\n", capture_output=True, check=True, env=buffered)


def test_nothing_but_the_protocol_reaches_standard_output_whatever_is_printed() -> None:
    ran = claim()
    assert ran.stdout == b"protocol\n"
    for printed in (b"before", b"by a library", b"in C", b"by a child", b"after"):
        assert printed in ran.stderr
    # Three standard streams and the listing's own: the private two are not inherited.
    assert b"\n4\n" in ran.stderr


def test_a_driver_without_standard_error_still_keeps_its_output_clean() -> None:
    assert claim("sh", "-c", '"$@" 2>&-', "sh").stdout == b"protocol\n"


@pytest.mark.parametrize(("closed", "word"), [("<&-", "input"), (">&-", "output")])
def test_a_closed_standard_stream_is_an_error_that_names_it(closed: str, word: str) -> None:
    ran = subprocess.run(
        [
            "sh",
            "-c",
            f'"$@" {closed}',
            "sh",
            sys.executable,
            "-c",
            CLAIMS.replace("print", "str", 1),
        ],
        capture_output=True,
        check=False,
    )
    assert ran.returncode != 0
    assert f"standard {word} is closed" in ran.stderr.decode()
