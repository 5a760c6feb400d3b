"""Processes: what a client starts ends with it, whatever becomes of the driver."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from probebench.host import process, quarters
from probebench.host.client_process import ClientProcess
from probebench.host.signals import NoSignals
from probebench.host.subprocess_channel import PerAskClient, SharedClient
from probebench.kernel.episode import Fault, FaultKind
from probebench.kernel.errors import HostError
from tests.process.drivers import (
    DIRECT,
    SCRIPTED,
    agent,
    command,
    driver,
    evaluator,
    run,
    run_forked,
)
from tests.process.programs import command as client_command

LONG_S = 60.0
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's prctl and pidfd")

# Leaves a process that has left its group and session and has no parent, and
# says its number.
DAEMON = """
import subprocess
out, into = os.pipe()
if os.fork() == 0:
    os.setsid()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    os.write(into, b"%d" % child.pid)
    os._exit(0)
os.wait()
daemon = os.read(out, 20)
"""
# A child of the client's that keeps its pipes when the client is gone.
HOLDS_THE_PIPES = """
if os.fork() == 0:
    time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int, within_s: float = 20.0) -> bool:
    deadline = time.monotonic() + within_s
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def in_a_driver(task: Callable[[], bool]) -> bool:
    """What ``task`` returns in a process of its own, shielded as a driver is."""
    child = os.fork()
    if child == 0:
        answer = False
        try:
            process.shield()
            answer = task()
        except BaseException:  # noqa: BLE001 - a child must not run on into pytest
            traceback.print_exc()
        os._exit(0 if answer else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- descendants ------------------------------------------------------------------------


@linux_only
def test_a_daemon_of_a_client_ends_with_it(tmp_path: Path) -> None:
    def task() -> bool:
        program = DAEMON + "read_line(); write(daemon + b'\\n'); read_line()"
        client = SharedClient(client_command(tmp_path, program), "agent", NoSignals())
        daemon = int(client.exchange(b"\n", LONG_S).line or b"0")
        running = alive(daemon)
        client.close()
        return running and not alive(daemon) and process.children() == set()

    assert in_a_driver(task)


@linux_only
def test_a_daemon_of_one_ask_ends_with_the_ask_unless_it_may_be_anothers(tmp_path: Path) -> None:
    def task() -> bool:
        asked = client_command(tmp_path, DAEMON + "write(daemon)")
        alone = int(PerAskClient(asked, "agent", NoSignals()).exchange(b"\n", LONG_S).line or b"0")
        (tmp_path / "other").mkdir()
        lasting = SharedClient(
            client_command(tmp_path / "other", "read_line()"), "agent", NoSignals()
        )
        beside = int(PerAskClient(asked, "agent", NoSignals()).exchange(b"\n", LONG_S).line or b"0")
        before = alive(alone), alive(beside)
        lasting.close()
        return before == (False, True) and not alive(beside)

    assert in_a_driver(task)


@linux_only
def test_a_driver_that_takes_in_no_orphans_would_leave_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "shield", lambda: None)
    path = tmp_path / "pid"

    def task() -> bool:
        asked = client_command(tmp_path, DAEMON + "write(daemon)")
        path.write_bytes(PerAskClient(asked, "agent", NoSignals()).exchange(b"\n", 20).line or b"")
        return True

    assert in_a_driver(task)
    daemon = int(path.read_bytes())
    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)


@linux_only
def test_a_child_that_was_there_before_is_no_orphan() -> None:
    def task() -> bool:
        child = os.fork()
        if child == 0:
            time.sleep(600)
        process.end_orphans({child}, 1.0)
        spared = alive(child)
        process.end_orphans(set(), 5.0)
        return spared and process.children() == set()

    assert in_a_driver(task)


def test_an_orphan_that_does_not_end_is_named_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "children", lambda: {12345})
    monkeypatch.setattr(process, "_end", lambda pid: None)
    with pytest.raises(HostError, match="do not end on SIGKILL: 12345"):
        process.end_orphans(set(), 0.01)


@linux_only
def test_a_system_that_refuses_the_shield_is_a_host_error() -> None:
    with pytest.raises(HostError, match=r"refuses to protect the driver \(prctl 4\)"):
        process._control(process.PR_SET_DUMPABLE, 99)


# -- a client that is gone while its pipes are held ---------------------------------------


@linux_only
def test_the_exit_of_a_client_is_the_end_of_input_though_a_child_holds_its_pipes(
    tmp_path: Path,
) -> None:
    client = SharedClient(client_command(tmp_path, HOLDS_THE_PIPES), "agent", NoSignals())
    received = client.exchange(b"x" * 200_000 + b"\n", LONG_S)
    client.close()
    assert received.fault == Fault(FaultKind.EOF)


@linux_only
def test_a_line_that_was_written_before_the_exit_counts(tmp_path: Path) -> None:
    asked = client_command(tmp_path, "write(b'{}\\n')\n" + HOLDS_THE_PIPES)
    client = SharedClient(asked, "agent", NoSignals())
    assert client.exchange(b"x" * 200_000 + b"\n", LONG_S).line == b"{}\n"
    assert client.exchange(b"\n", LONG_S).fault == Fault(FaultKind.EOF)
    client.close()


@linux_only
def test_the_output_of_an_ask_is_its_answer_though_a_child_holds_the_pipe(tmp_path: Path) -> None:
    asked = client_command(tmp_path, "write(b'{}')\n" + HOLDS_THE_PIPES)
    assert PerAskClient(asked, "agent", NoSignals()).exchange(b"\n", LONG_S).line == b"{}"


# -- a driver that is killed ------------------------------------------------------------------

# Says its number and where it lives, and never reads.
DEAF = """
import json, os, sys, time
sys.stderr.write(json.dumps([os.getpid(), os.getcwd()]) + "\\n")
sys.stderr.flush()
while True:
    time.sleep(1)
"""


HEARS = DEAF.replace("while True:\n    time.sleep(1)", "sys.stdin.read()")


def awaited(path: Path) -> tuple[int, str]:
    for _ in range(4000):
        with suppress(FileNotFoundError):
            if (text := path.read_text()).endswith("\n"):
                pid, folder = json.loads(text)
                return pid, folder
        time.sleep(0.005)
    raise AssertionError("the client does not start")


def test_a_driver_killed_by_sigkill_takes_client_and_folder_along(tmp_path: Path) -> None:
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a")
    seen = tmp_path / "seen"
    with driver(*words, "--agent", agent(tmp_path, DEAF), "--agent-stderr", seen) as speaker:
        pid, folder = awaited(seen)
        speaker.process.kill()
        speaker.process.wait()
    assert ends(pid)
    for _ in range(1000):
        if not Path(folder).exists():
            break
        time.sleep(0.01)
    assert not Path(folder).exists()
    assert run_forked("resume", tmp_path / "a", "--agent", SCRIPTED).returncode == 0


def test_without_the_deathwatch_a_deaf_client_would_linger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarters, "DEATHWATCH", "exit")
    seen = tmp_path / "seen"

    def task() -> bool:
        ClientProcess(client_command(tmp_path, DEAF, seen), "agent")
        awaited(seen)
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    assert not in_a_driver(task)
    pid, folder = awaited(seen)
    time.sleep(0.2)
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)
    Path(folder).rmdir()


def test_a_client_that_ends_leaves_no_folder_and_no_shell(tmp_path: Path) -> None:
    before = process.children()
    client = ClientProcess(client_command(tmp_path, "read_line()"), "agent")
    folder = Path(client._quarters.folder)
    assert folder.name.startswith(quarters.PREFIX)
    assert folder.parent == Path(tempfile.gettempdir())
    assert len(process.children() - before) == 2
    client.end(20.0)
    assert not folder.exists()
    assert process.children() == before


def test_a_client_without_a_deathwatch_is_not_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = process.children()
    monkeypatch.setattr(quarters, "SHELL", "/no/such/shell")
    with pytest.raises(FileNotFoundError):
        ClientProcess(client_command(tmp_path, "time.sleep(600)"), "agent")
    assert process.children() == before


# -- signals and terminals, with a started client -----------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_client_too_and_leaves_a_folder_that_resumes(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a")
    seen = tmp_path / "seen"
    with driver(*words, "--agent", agent(tmp_path, HEARS), "--agent-stderr", seen) as speaker:
        pid, folder = awaited(seen)
        speaker.process.send_signal(number)
        assert speaker.process.wait(timeout=60) == code
    assert not alive(pid)
    assert not Path(folder).exists()
    require_resumable(tmp_path / "a")


def require_resumable(folder: Path) -> None:
    assert not (folder / "manifest.json").exists()
    assert list(folder.glob("turns/*")) == []
    assert run_forked("resume", folder, "--agent", SCRIPTED).returncode == 0
    assert evaluator(folder)["outcome"]["status"] == "submitted"


TERMINAL = """
import json, os, sys, time
try:
    terminal = os.open("/dev/tty", os.O_RDWR) >= 0
except OSError:
    terminal = False
sys.stderr.write(json.dumps([os.getpid(), str(terminal)]) + "\\n")
sys.stderr.flush()
sys.stdin.read()
"""


def test_a_terminal_that_closes_hangs_up_the_driver_and_was_never_the_clients(
    tmp_path: Path,
) -> None:
    seen = tmp_path / "seen"
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a")
    started = command(*words, "--agent", agent(tmp_path, TERMINAL), "--agent-stderr", seen)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(started[0], started)
    client, had_terminal = awaited(seen)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    assert had_terminal == "False"
    assert not alive(client)
    require_resumable(tmp_path / "a")


def test_a_terminal_that_is_the_client_and_closes_leaves_a_folder_that_resumes(
    tmp_path: Path,
) -> None:
    started = command("session", "--config", DIRECT, "--output", tmp_path / "a")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(started[0], started)
    said = b""
    while b'"kind":"request"' not in said:
        said += os.read(terminal, 65536)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    require_resumable(tmp_path / "a")


def test_a_closed_standard_output_does_not_matter_to_a_started_client(tmp_path: Path) -> None:
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a", "--agent", SCRIPTED)
    with driver(*words) as speaker:
        assert speaker.process.stdout is not None
        speaker.process.stdout.close()
        assert speaker.process.wait(timeout=60) == 5
    assert run("verify", tmp_path / "a").returncode == 0
