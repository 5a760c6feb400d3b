"""Sandboxed clients: they play as others do, and see their own files alone."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import probebench
from probebench.app.clients import CommandClients
from probebench.app.session import run_session
from probebench.app.verify import verify_folder
from probebench.host import sandbox, sandbox_view
from probebench.host.sandbox import SCRATCH_BYTES, find_launcher
from probebench.host.signals import NoSignals
from probebench.host.subprocess_channel import PerAskClient, SharedClient
from probebench.kernel.episode import Fault, FaultKind
from tests.journals import masked
from tests.process.boxes import LONG_S, NEEDS_BWRAP, PACKAGE, asked, sandboxed
from tests.process.drivers import (
    DIRECT,
    SCRIPTED,
    agent,
    driver,
    evaluator,
    run,
    run_forked,
)
from tests.process.test_processes import DEAF, alive, awaited, ends
from tests.rigs import constant_rig

pytestmark = NEEDS_BWRAP

# -- sessions -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sandboxed session of the supplied client, complete; not to be changed."""
    folder = tmp_path_factory.mktemp("sandboxed") / "session"
    words = ("session", "--config", DIRECT, "--output", folder, "--agent", SCRIPTED, "--sandbox")
    ran = run(*words)
    assert ran.returncode == 0, ran.stderr
    return folder


def record(folder: Path) -> Any:
    return json.loads((folder / "study.json").read_bytes())["sandbox"]


def test_the_supplied_client_plays_as_it_does_without_one(whole: Path, finished: Path) -> None:
    assert run_forked("verify", whole).returncode == 0
    assert evaluator(whole)["evaluation"] == evaluator(finished)["evaluation"]
    assert record(finished) is None
    assert record(whole) == {
        "binds": [],
        "launcher": "bwrap",
        "scratch_bytes": SCRATCH_BYTES,
        "version": find_launcher()[1],
    }


def test_a_session_of_processes_an_ask_is_played_in_sandboxes(tmp_path: Path) -> None:
    program = "import json; n = json.loads(read_line())['attempt']; write(b'{\"x\":%d}' % (n + 5))"
    command = sandboxed(tmp_path, program)
    assert command.sandbox is not None
    rig = replace(constant_rig(), sandbox=command.sandbox.record)
    clients = CommandClients(command, NoSignals())
    config = {"environment": "breeder", "proposals": 3, "inner": None}
    outcome = run_session(rig, tmp_path / "session", config, clients)
    assert outcome.evaluator["evaluation"] == {
        "best": max(n * 37 % 101 for n in (0, 1, 2, 5, 6, 7))
    }
    assert verify_folder(constant_rig(), tmp_path / "session").verified
    assert record(tmp_path / "session") == command.sandbox.record


KILLING = """
import os, sys, time
sys.stdin.readline()
sys.stderr.write("here\\n")
sys.stderr.flush()
time.sleep(600)
"""


def test_a_sandboxed_session_resumes_within_its_sandbox_alone(whole: Path, tmp_path: Path) -> None:
    seen, folder = tmp_path / "seen", tmp_path / "a"
    words = ("session", "--config", DIRECT, "--output", folder, "--sandbox")
    with driver(*words, "--agent", agent(tmp_path, KILLING), "--agent-stderr", seen) as speaker:
        while not seen.exists() or not seen.read_text():
            assert speaker.process.poll() is None
        speaker.process.kill()
    for options, said in (
        ((), b"was started with --sandbox and cannot go on without it"),
        (("--sandbox", "--sandbox-bind", tmp_path / "seen"), b"the sandbox has changed: binds"),
    ):
        refused = run_forked("resume", folder, "--agent", SCRIPTED, *options)
        assert (refused.returncode, said in refused.stderr) == (4, True), refused.stderr
    assert run("resume", folder, "--agent", SCRIPTED, "--sandbox").returncode == 0
    assert masked(folder) == masked(whole)
    assert run_forked("resume", folder).returncode == 0, "a completed one is only reported"


def test_a_session_without_a_sandbox_does_not_go_on_within_one(tmp_path: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        speaker.receive()
        speaker.process.kill()
    refused = run("resume", tmp_path / "a", "--agent", SCRIPTED, "--sandbox")
    assert refused.returncode == 4
    assert b"was started without --sandbox and cannot go on with it" in refused.stderr


def test_a_driver_killed_by_sigkill_takes_the_sandbox_along(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    # Its own number is another one within.
    program = DEAF.replace("os.getpid()", "int(sys.argv[1])")
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a", "--sandbox")
    marker = "4194304123"  # more than a process number can be
    started = f"{agent(tmp_path, program)} {marker}"
    with driver(*words, "--agent", started, "--agent-stderr", seen) as speaker:
        awaited(seen)
        pids = named(marker, speaker.process.pid)
        speaker.process.kill()
        speaker.process.wait()
    assert len(pids) >= 2
    assert all(ends(pid) for pid in pids)


def named(word: str, but: int) -> list[int]:
    """The processes that have this word on their command line."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_bytes().split(b"\0") if path.name.isdigit() else []
        except OSError:
            continue
        if word.encode() in words and int(path.name) != but:
            found.append(int(path.name))
    return found


def test_a_daemon_in_a_sandbox_ends_with_the_client(tmp_path: Path) -> None:
    marker = f"daemon-{os.getpid()}"
    program = (
        "import subprocess\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        f"    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}],\n"
        "        start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "write(b'up\\n'); read_line(); read_line()\n"
    )
    client = SharedClient(sandboxed(tmp_path, program), "agent", NoSignals())
    assert client.exchange(b"\n", LONG_S).line == b"up\n"
    (pid,) = named(marker, 0)
    assert alive(pid)
    client.close()
    assert ends(pid)


# -- what a client sees ----------------------------------------------------------------------


def test_it_sees_a_cleared_environment_a_folder_of_its_own_and_no_other_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "1")
    program = (
        "import json, resource\n"
        "limits = [resource.getrlimit(name)[1] for name in\n"
        "          (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)]\n"
        "launcher = open('/proc/1/environ', 'rb').read().decode()\n"
        "write(json.dumps([dict(os.environ), os.getcwd(), os.listdir('.'),\n"
        "    sorted(os.listdir('/proc/self/fd')), limits, os.uname().nodename, launcher]).encode())"
    )
    line, _ = asked(sandboxed(tmp_path, program))
    assert line is not None
    seen, cwd, entries, descriptors, limits, host, launcher = json.loads(line)
    expected = {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PROBEBENCH_PORT"}
    assert set(seen) - {"PWD"} <= expected
    assert seen["HOME"] == seen["TMPDIR"] == cwd == "/client"
    assert seen["PATH"].split(":")[0] == str(Path(sys.executable).parent)
    assert (entries, descriptors) == ([], ["0", "1", "2", "3"])  # 3 lists the folder
    assert limits[0] == 0
    assert limits[1] <= sandbox.MAX_OPEN_FILES
    assert limits[2] <= sandbox.MAX_FILE_BYTES
    assert (host, launcher) == ("client", "")


def test_the_package_has_its_public_side_alone(tmp_path: Path) -> None:
    program = (
        "import probebench.clients, probebench.wire.optical, json\n"
        "from pathlib import Path\n"
        "root = Path(probebench.clients.__file__).parents[1]\n"
        "write(json.dumps([sorted(p.name for p in root.iterdir()),\n"
        "                  sorted(p.name for p in root.parent.iterdir())]).encode())"
    )
    line, _ = asked(sandboxed(tmp_path, program))
    assert line is not None
    package, beside = json.loads(line)
    assert package == ["__init__.py", "clients", "kernel", "py.typed", "wire"]
    assert not {"configs", "tests", ".git", "docs", "work"} & set(beside)


def test_an_installed_package_has_its_public_side_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "lib/site-packages"
    shutil.copytree(PACKAGE, site / "probebench", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "other.py").touch()
    genuine = sandbox_view._interpreter
    monkeypatch.setattr(sandbox_view, "_interpreter", lambda: [*genuine(), str(site)])
    monkeypatch.setattr(probebench, "__file__", str(site / "probebench/__init__.py"))
    program = (
        "import json\n"
        f"folders = [os.listdir({str(site)!r}), os.listdir({str(site / 'probebench')!r})]\n"
        "write(json.dumps(folders).encode())"
    )
    line, _ = asked(sandboxed(tmp_path, program))
    assert line is not None
    beside, package = json.loads(line)
    assert sorted(beside) == ["other.py", "probebench"]
    assert sorted(package) == ["__init__.py", "clients", "kernel", "py.typed", "wire"]


def test_what_the_operator_shows_can_be_read_and_not_written(tmp_path: Path) -> None:
    shown = tmp_path / "model"
    shown.mkdir()
    (shown / "weights").write_text("weights")
    program = (
        f"from pathlib import Path\nshown = Path({str(shown)!r})\n"
        "try:\n    (shown / 'new').write_text('x')\n"
        "except OSError as error:\n    write(error.strerror.encode())\n"
        "write((shown / 'weights').read_bytes())"
    )
    assert asked(sandboxed(tmp_path, program, [shown])) == (b"Read-only file systemweights", None)
    line, fault = asked(sandboxed(tmp_path, program))
    assert (line, fault) == (None, Fault(FaultKind.ADAPTER, 1))


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("write(b'{}'); sys.exit(3)", 3),
        ("sys.exit(1)", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_its_exit_code_is_the_clients_own(tmp_path: Path, program: str, code: int) -> None:
    assert asked(sandboxed(tmp_path, program)) == (None, Fault(FaultKind.ADAPTER, code))


def test_a_process_that_outstays_the_deadline_is_a_timeout(tmp_path: Path) -> None:
    command = sandboxed(tmp_path, "read_line(); time.sleep(600)")
    received = PerAskClient(command, "agent", NoSignals()).exchange(b"{}\n", 0.5)
    assert received.fault == Fault(FaultKind.TIMEOUT)


def test_its_exit_is_the_end_of_input_and_a_pipe_that_it_closes_is_not(tmp_path: Path) -> None:
    """The launcher holds the pipes too; docs/security.md says so."""
    command = sandboxed(tmp_path, "write(b'up\\n'); os.close(1); read_line(); read_line()")
    client = SharedClient(command, "agent", NoSignals())
    assert client.exchange(b"", LONG_S).line == b"up\n"
    assert client.exchange(b"{}\n", 0.2).fault == Fault(FaultKind.TIMEOUT)
    faults = [client.exchange(b"{}\n", LONG_S).fault for _ in range(2)]
    assert faults == [Fault(FaultKind.EOF)] * 2
    client.close()
