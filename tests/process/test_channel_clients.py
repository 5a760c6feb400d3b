"""Clients that the driver starts: real processes, all of them misbehaving somehow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probebench.host import client_process as processes
from probebench.host.client_process import ClientCommand, ClientProcess
from probebench.host.pump import Pump
from probebench.host.signals import NoSignals, StopSignals
from probebench.host.subprocess_channel import PerAskClient, SharedClient
from probebench.kernel.episode import Fault, FaultKind
from probebench.kernel.errors import HostError, InterruptedBySignalError, OperatorError
from probebench.kernel.framing import MAX_LINE_BYTES
from tests.process.programs import ECHOES_LENGTHS, READY, command

LONG_S = 60.0
MESSAGE = b"x" * 200_000 + b"\n"


def shared(tmp_path: Path, program: str, stderr_path: Path | None = None) -> SharedClient:
    return SharedClient(command(tmp_path, program, stderr_path), "agent", NoSignals())


def kind(fault: Fault | None) -> FaultKind | None:
    return None if fault is None else fault.kind


def gone(pid: int) -> bool:
    """Whether a process has ended; awaited, for the system reaps at its leisure."""
    for _ in range(2000):
        status = Path(f"/proc/{pid}/stat")
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.005)
    return False


# -- one process for all asks -------------------------------------------------------


def test_one_process_answers_every_ask(tmp_path: Path) -> None:
    client = shared(tmp_path, "while True: read_line(); write(b'%d\\n' % os.getpid())")
    pids = {client.exchange(b"x\n", LONG_S).line for _ in range(3)}
    client.close()
    assert len(pids) == 1


def test_large_messages_both_ways_do_not_deadlock(tmp_path: Path) -> None:
    client = shared(tmp_path, "write(b'y' * 999 + b'\\n'); " * 150 + "\n" + ECHOES_LENGTHS)
    lines = [client.exchange(MESSAGE, LONG_S).line for _ in range(151)]
    client.close()
    assert lines[-1] == b"%d\n" % len(MESSAGE)


def test_ten_megabytes_on_standard_error_do_not_stall_it_and_only_their_end_is_kept(
    tmp_path: Path,
) -> None:
    client = shared(
        tmp_path,
        "while True:\n"
        "    line = read_line()\n"
        "    sys.stderr.write('e' * 10_000_000 + 'the end'); sys.stderr.flush()\n"
        "    write(line)\n",
    )
    assert client.exchange(b"one\n", LONG_S).line == b"one\n"
    assert client.exchange(b"two\n", LONG_S).line == b"two\n"
    client.close()
    assert client.last_words.endswith("the end")
    assert len(client.last_words) == 8192


def test_a_client_that_writes_errors_while_the_driver_computes_goes_on_afterwards(
    tmp_path: Path,
) -> None:
    program = "read_line(); write(b'1\\n'); sys.stderr.write('e' * 10_000_000); read_line(); write(b'2\\n')"
    client = shared(tmp_path, program)
    assert client.exchange(b"x\n", LONG_S).line == b"1\n"
    time.sleep(0.2)  # by now it is stuck on a full pipe
    assert client.exchange(b"x\n", LONG_S).line == b"2\n"
    client.close()


def test_a_driver_that_does_not_drain_standard_error_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = shared(tmp_path, "read_line(); sys.stderr.write('e' * 10_000_000); write(b'1\\n')")
    client._ends.aside = None
    assert kind(client.exchange(b"x\n", 1.0).fault) is FaultKind.TIMEOUT
    client.close()


def test_standard_error_goes_to_a_file_when_one_is_given(tmp_path: Path) -> None:
    path = tmp_path / "client.log"
    client = shared(tmp_path, "sys.stderr.write('e' * 100_000); read_line(); write(b'1\\n')", path)
    assert client.exchange(b"x\n", LONG_S).line == b"1\n"
    client.close()
    assert (path.stat().st_size, client.last_words) == (100_000, "")
    with pytest.raises(OperatorError, match="cannot write the client's standard error"):
        shared(tmp_path, "", tmp_path / "missing" / "client.log")


@pytest.mark.parametrize(
    "program",
    ["read_line(); os._exit(1)", "os.close(0); os.close(1); time.sleep(600)", "os._exit(0)"],
)
def test_its_death_or_a_closed_pipe_is_the_end_of_input(tmp_path: Path, program: str) -> None:
    client = shared(tmp_path, program)
    faults = [kind(client.exchange(MESSAGE, LONG_S).fault) for _ in range(2)]
    assert faults == [FaultKind.EOF, FaultKind.EOF]
    assert client.send(MESSAGE, LONG_S) is False
    client.close()


def test_a_line_from_a_client_that_does_not_read_counts(tmp_path: Path) -> None:
    client = shared(tmp_path, "write(b'{}\\n')")
    assert client.exchange(MESSAGE, LONG_S).line == b"{}\n"
    client.close()


def test_a_client_that_never_reads_times_out(tmp_path: Path) -> None:
    client = shared(tmp_path, READY + "time.sleep(600)")
    assert client.exchange(b"", LONG_S).line == b"ready\n"
    assert kind(client.exchange(MESSAGE, 0.3).fault) is FaultKind.TIMEOUT
    client.close()


def test_a_farewell_reaches_it_and_it_may_end_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "heard"
    program = f"read_line(); open({str(path)!r}, 'wb').write(read_line())\nwhile True: read_line()"
    client = shared(tmp_path, "write(b'hi\\n'); " + program)
    assert client.exchange(b"x\n", LONG_S).line == b"hi\n"
    assert client.send(b"farewell\n", LONG_S) is True
    client.close()
    assert path.read_bytes() == b"farewell\n"


# -- its end --------------------------------------------------------------------------

FAMILY = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
'''], stdout=subprocess.PIPE)
child.stdout.readline()
write(b"%d %d\\n" % (os.getpid(), child.pid))
"""


def family(client: SharedClient) -> list[int]:
    line = client.exchange(b"", LONG_S).line
    assert line is not None
    return [int(word) for word in line.split()]


@pytest.mark.parametrize(
    "ending",
    ["time.sleep(600)", "sys.exit(0)", "signal.signal(15, signal.SIG_IGN); time.sleep(600)"],
)
def test_the_whole_process_group_ends_with_the_client(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "TERM_GRACE_S", 0.1)
    monkeypatch.setattr("probebench.host.subprocess_channel.EXIT_GRACE_S", 0.1)
    client = shared(tmp_path, FAMILY + ending)
    pids = family(client)
    client.close()
    assert [gone(pid) for pid in pids] == [True, True]
    client.close()  # a second time is no error


def test_ending_the_client_alone_would_leave_its_children(tmp_path: Path) -> None:
    client = shared(tmp_path, FAMILY + "time.sleep(600)")
    parent, child = family(client)
    os.kill(parent, signal.SIGKILL)
    assert gone(parent)
    assert Path(f"/proc/{child}").exists()
    client.close()
    assert gone(child)


def test_the_end_is_bounded_though_the_client_floods(tmp_path: Path) -> None:
    program = (
        "import threading\n"
        "threading.Thread(target=lambda: [os.write(2, b'e' * 65536) for _ in iter(int, 1)]).start()\n"
        "while True: write(b'y' * 65536)"
    )
    client = shared(tmp_path, program)
    assert kind(client.exchange(b"", LONG_S).fault) is FaultKind.OVERSIZE
    client.close()
    assert gone(client._process._process.pid)


def test_a_client_that_even_sigkill_does_not_end_is_reported_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "KILL_GRACE_S", 0.0)
    process = ClientProcess(command(tmp_path, "time.sleep(600)"), "agent")
    monkeypatch.setattr(
        process, "_signal_group", lambda number: None
    )  # as in uninterruptible sleep
    monkeypatch.setattr(processes, "TERM_GRACE_S", 0.0)
    with pytest.raises(HostError, match="does not end on SIGKILL"):
        process.end(0.0)
    monkeypatch.undo()
    assert process.end(0.0) == 128 + signal.SIGTERM


# -- what it sees ---------------------------------------------------------------------

SEES = """
import json
descriptors = sorted(os.listdir("/proc/self/fd"))
write(json.dumps([dict(os.environ), os.getcwd(), os.listdir("."), descriptors]).encode())
"""


def test_it_sees_a_cleared_environment_its_own_folder_and_no_other_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "1")
    monkeypatch.setenv("LANG", "C.UTF-8")
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    seen = PerAskClient(command(tmp_path, SEES), "critic", NoSignals()).exchange(b"\n", LONG_S)
    os.close(held)
    assert seen.line is not None
    environment, cwd, entries, descriptors = json.loads(seen.line)
    assert set(environment) <= {
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "PROBEBENCH_PORT",
    }
    assert environment["PROBEBENCH_PORT"] == "critic"
    assert environment["HOME"] == environment["TMPDIR"] == cwd != str(Path.cwd())
    assert environment["PATH"].split(":")[0] == str(Path(sys.executable).parent)
    assert (entries, descriptors) == ([], ["0", "1", "2", "3"])  # 3 lists the folder
    assert not Path(cwd).exists(), "the folder is removed"


def test_a_variable_is_passed_by_name() -> None:
    surrounding = {"PATH": "/usr/bin:/bin", "KEY": "k", "OTHER": "o"}
    parsed = ClientCommand.parse("sh", pass_through=["KEY"], surrounding=surrounding)
    assert parsed.environment["KEY"] == "k"
    assert "OTHER" not in parsed.environment
    assert "'k'" not in repr(parsed), "a key is not printed with the command"
    with pytest.raises(OperatorError, match="the variable MISSING is to be passed"):
        ClientCommand.parse("sh", pass_through=["MISSING"], surrounding=surrounding)


def test_files_named_in_the_command_are_found_from_the_clients_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("print('hello')\n")
    (tmp_path / "probebench").mkdir()  # a folder of a module's name is no file
    parsed = ClientCommand.parse("python -u agent.py -m probebench --x=agent.py 'two words'")
    here = str(tmp_path / "agent.py")
    assert parsed.argv[1:] == ("-u", here, "-m", "probebench", "--x=agent.py", "two words")
    assert PerAskClient(parsed, "agent", NoSignals()).exchange(b"\n", LONG_S).line == b"hello\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the client command is empty"),
        ("python 'unbalanced", "cannot be read: No closing quotation"),
        ("no-such-program --x", "client program 'no-such-program' is not found"),
        ("./notes.txt", "'./notes.txt' is not found, or may not be executed"),
    ],
)
def test_a_command_that_cannot_be_run_is_an_operators_error(
    text: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("no program")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OperatorError, match=sentence):
        ClientCommand.parse(text)


def unstartable(tmp_path: Path) -> ClientCommand:
    program = tmp_path / "agent"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o700)
    return ClientCommand.parse(str(program))


def test_a_program_that_does_not_start_is_named(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(OperatorError, match=r"agent' cannot be started: No such file"):
        SharedClient(unstartable(tmp_path), "agent", NoSignals())
    received = PerAskClient(unstartable(tmp_path), "agent", NoSignals()).exchange(b"\n", LONG_S)
    assert received.fault == Fault(FaultKind.ADAPTER, 127)
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_machine_without_processes_left_is_a_host_error_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(11, os.strerror(11))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(HostError, match="no process can be started"):
        PerAskClient(command(tmp_path, ""), "agent", NoSignals()).exchange(b"\n", LONG_S)
    with pytest.raises(HostError, match="no process can be started"):
        SharedClient(command(tmp_path, ""), "agent", NoSignals())


# -- one process an ask ---------------------------------------------------------------


def ask(
    tmp_path: Path, program: str, deadline_s: float = LONG_S
) -> tuple[bytes | None, Fault | None]:
    client = PerAskClient(command(tmp_path, program), "agent", NoSignals())
    received = client.exchange(MESSAGE, deadline_s)
    return received.line, received.fault


@pytest.mark.parametrize("output", [b"{}\n", b"{}", b'{\n  "a": 1\n}\n\n', b"", b"\xff\n"])
def test_the_answer_is_the_exact_output_of_a_process_that_exits_with_zero(
    tmp_path: Path, output: bytes
) -> None:
    assert ask(tmp_path, f"read_line(); write({output!r})") == (output, None)


def test_each_ask_has_a_process_and_a_folder_of_its_own(tmp_path: Path) -> None:
    program = "open('left', 'x'); write(b'%d' % os.getpid())"
    client = PerAskClient(command(tmp_path, program), "agent", NoSignals())
    lines = {client.exchange(b"\n", LONG_S).line for _ in range(2)}
    assert len(lines) == 2
    assert None not in lines


def test_its_input_ends_after_the_message(tmp_path: Path) -> None:
    assert ask(tmp_path, "write(b'%d' % len(sys.stdin.buffer.read()))") == (b"200001", None)


def test_an_answer_without_reading_the_message_counts(tmp_path: Path) -> None:
    assert ask(tmp_path, "write(b'{}')") == (b"{}", None)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("write(b'{}'); sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_another_exit_code_is_an_adapter_fault(tmp_path: Path, program: str, code: int) -> None:
    assert ask(tmp_path, program) == (None, Fault(FaultKind.ADAPTER, code))


def test_its_last_words_are_kept(tmp_path: Path) -> None:
    client = PerAskClient(command(tmp_path, "raise ValueError('why')"), "agent", NoSignals())
    client.exchange(b"\n", LONG_S)
    assert client.last_words.endswith("ValueError: why\n")


@pytest.mark.parametrize(
    "program",
    [
        "time.sleep(600)",
        "read_line(); write(b'{}'); time.sleep(600)",
        "read_line(); write(b'{}'); os.close(1); time.sleep(600)",
        "os.close(1); time.sleep(600)",
    ],
)
def test_a_process_that_outstays_the_deadline_is_a_timeout(tmp_path: Path, program: str) -> None:
    assert ask(tmp_path, program, 0.5) == (None, Fault(FaultKind.TIMEOUT))


def test_more_output_than_a_line_may_have_is_oversize(tmp_path: Path) -> None:
    assert ask(tmp_path, f"write(b' ' * {MAX_LINE_BYTES})") == (b" " * MAX_LINE_BYTES, None)
    fault = Fault(FaultKind.OVERSIZE)
    assert ask(tmp_path, f"write(b' ' * {MAX_LINE_BYTES + 1})") == (None, fault)
    assert ask(tmp_path, "while True: write(b'y' * 65536)") == (None, fault)


def test_what_it_leaves_running_ends_with_the_exchange(tmp_path: Path) -> None:
    program = FAMILY.replace("write(", "os.write(2, ") + "sys.exit(0)"
    client = PerAskClient(command(tmp_path, program), "agent", NoSignals())
    assert client.exchange(b"\n", LONG_S).line == b""
    assert [gone(int(word)) for word in client.last_words.split()] == [True, True]


def test_a_signal_ends_the_wait_and_the_process(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    program = f"open({str(path)!r}, 'w').write(str(os.getpid())); os.kill({os.getpid()}, 15); time.sleep(600)"
    with StopSignals() as stop, pytest.raises(InterruptedBySignalError, match="SIGTERM"):
        PerAskClient(command(tmp_path, program), "agent", stop).exchange(b"\n", LONG_S)
    assert gone(int(path.read_text()))


def test_the_pipes_of_a_client_do_not_block_the_driver(tmp_path: Path) -> None:
    process = ClientProcess(command(tmp_path, "time.sleep(600)"), "agent")
    ends = [process.source, process.sink, *([process.aside] if process.aside is not None else [])]
    assert [os.get_blocking(end) for end in ends] == [False] * 3
    assert process.end(0.0) == 128 + signal.SIGTERM


def test_exchanges_use_the_one_loop() -> None:
    assert SharedClient.exchange.__globals__["Pump"] is Pump
    assert PerAskClient._run.__globals__["Pump"] is Pump
