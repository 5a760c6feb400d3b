"""A system call that fails, any of a session's: it is told, nothing is sent that
is not durable, and a resume ends as if nothing had been."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from probebench.app.rig import Rig
from probebench.app.verify import verify_folder
from probebench.host.filesystem import Filesystem
from probebench.kernel.errors import HostError
from tests.conformance import supersedes
from tests.environments.test_conformance import CASES, REPOSITORY
from tests.faults.injected import (
    CALLS,
    LINE,
    Before,
    Injection,
    Ran,
    faults_of,
    injections,
    run_traced,
    why_not,
)
from tests.faults.share import WHOLE, Count, share
from tests.faults.test_kills import sends_before_it_publishes
from tests.rigs import constant_rig, folder_bytes

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

# No record depends on the result of these: the end of a listing, and a path
# that is resolved before it is opened.
HARMLESS = ("close", "newfstatat")
TOY = "thermometer"
ERRORS = ["EIO", "ENOSPC", "EDQUOT", "ENOMEM"] if WHOLE else ["EIO", "ENOSPC"]


class Sweep:
    """One environment's session, run under injections and compared with a whole one."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.case, self.cut = name, CASES[name], root / "cut"
        self.case.run(root / "whole")
        self.expected = folder_bytes(root / "whole")
        self.repeats = not supersedes(self.case)
        self.counts = self.run(None).counts()
        self.clear()

    def run(self, injection: Injection | None) -> Ran:
        return run_traced(self.case, self.cut, injection)

    def clear(self) -> None:
        shutil.rmtree(self.cut, ignore_errors=True)

    def faults(self, ran: Ran, injection: Injection | None) -> list[str]:
        """What was wrong with one run, before anything resumes."""
        found = faults_of(ran, self.cut)
        if ran.code == 0:
            found += self._silent_success(injection)
        return [f"{injection}: {fault}" for fault in found]

    def _silent_success(self, injection: Injection | None) -> list[str]:
        if not self.ends_right():
            return ["success, and the folder is not the right one"]
        lawful = injection is None or injection.call in HARMLESS or "EINTR" in injection.effect
        return [] if lawful else ["success, although a call failed that the records depend on"]

    def ends_right(self) -> bool:
        if self.repeats:
            return folder_bytes(self.cut) == self.expected
        return verify_folder(constant_rig(), self.cut).verified

    def check(self, injection: Injection) -> Ran:
        """One run with a failure, and the resume."""
        ran = self.run(injection)
        assert self.faults(ran, injection) == []
        self.case.run(self.cut, resume=True)
        assert self.ends_right(), injection
        self.clear()
        return ran


@pytest.fixture(params=CASES)
def sweep(request: pytest.FixtureRequest, memory_path: Path) -> Sweep:
    return Sweep(request.param, memory_path)


def test_a_session_under_strace_is_the_same(sweep: Sweep) -> None:
    """The instrument itself: it counts calls, and changes nothing."""
    ran = sweep.run(None)
    assert ran.code == 0
    assert sweep.faults(ran, None) == []
    assert min(ran.counts()[name] for name in ("write", "fsync", "linkat", "unlinkat")) > 10


@pytest.mark.parametrize("error", ERRORS)
def test_any_failed_call_is_told_and_a_resume_ends_the_same(
    error: str, sweep: Sweep, count: Count
) -> None:
    chosen = share(injections(sweep.counts, CALLS, f"error={error}"), 10)
    told = sum(sweep.check(injection).code == 5 for injection in chosen)
    # What no record depends on may fail in silence; an injection that never
    # took effect would be silent too.
    assert told >= sum(injection.call not in HARMLESS for injection in chosen)
    words = f"{told} told, the others without effect"
    count(f"system calls that failed with {error}, each resumed", len(chosen), sweep.name, words)


def test_an_interrupted_call_is_repeated_or_told(sweep: Sweep, count: Count) -> None:
    """EINTR alone leaves the pages that an fsync was to write as they were."""
    chosen = share(injections(sweep.counts, CALLS, "error=EINTR"), 6)
    for injection in chosen:
        sweep.check(injection)
    count("system calls that failed with EINTR, each resumed", len(chosen), sweep.name)


def test_killed_within_any_call_a_session_resumes_to_the_same_end(
    sweep: Sweep, count: Count
) -> None:
    """Between the durable steps too: a kill on entering each system call."""
    chosen = share(injections(sweep.counts, CALLS, "signal=KILL"), 8)
    for injection in chosen:
        assert sweep.check(injection).code == -9
    count("kills within a system call, each resumed", len(chosen), sweep.name)


@pytest.mark.parametrize("seed", range(200 if WHOLE else 4))
def test_failure_after_failure_a_session_still_ends_the_same(
    seed: int, memory_path: Path, count: Count
) -> None:
    sweep, chance = Sweep(TOY, memory_path), random.Random(seed)
    failures = 0
    while failures < 200:
        call = chance.choice([name for name in CALLS if sweep.counts[name]])
        effect = chance.choice(["error=EIO", "error=ENOSPC", "signal=KILL"])
        injection = Injection(call, effect, chance.randint(1, sweep.counts[call]))
        ran = sweep.run(injection)
        assert [f for f in sweep.faults(ran, injection) if "success" not in f] == []
        if ran.code == 0:
            break
        failures += 1
    assert sweep.ends_right()
    count("failures one after the other", failures, TOY, quietly=True)


def test_a_lock_that_fails_for_another_reason_is_no_second_driver(memory_path: Path) -> None:
    sweep = Sweep(TOY, memory_path)
    ran = sweep.check(Injection("flock", "error=ENOLCK", 1))
    assert ran.said.startswith("probebench: cannot lock the folder")
    assert sweep.run(Injection("flock", "error=EAGAIN", 1)).code == 6


# -- the installed command, from its start -----------------------------------------------

COMMAND = [sys.executable, "-m", "probebench"]
CONFIG = str(REPOSITORY / "configs" / "agent_protocol_development_direct.json")
AGENT = f"{sys.executable} -m probebench.clients.scripted"


@pytest.fixture(scope="module")
def calls_of_a_command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The driver's calls of the kinds that are made to fail below, in their order."""
    folder = tmp_path_factory.mktemp("command")
    ran = commanded(folder / "session", folder / "log", [])
    assert ran.returncode == 0, ran.stderr
    return [m[1] for m in map(LINE.match, (folder / "log").read_text().splitlines()) if m]


def commanded(folder: Path, log: Path, inject: list[str]) -> subprocess.CompletedProcess[str]:
    strace = ["strace", "-o", str(log), "-e", "trace=fsync,linkat,unlinkat", *inject]
    run = ["session", "--config", CONFIG, "--output", str(folder), "--agent", AGENT, "--resume"]
    return subprocess.run(
        [*strace, *COMMAND, *run], check=False, capture_output=True, text=True, timeout=120
    )


FRACTIONS = [0.1, 0.3, 0.5, 0.7, 0.9, 0.96, 0.98, 1.0] if WHOLE else [0.96]


@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize(
    ("call", "error"),
    [("fsync", "EIO"), ("linkat", "ENOSPC"), ("unlinkat", "EIO")][: 3 if WHOLE else 1],
)
def test_the_command_exits_with_5_and_a_sentence_and_can_be_resumed(
    call: str, error: str, fraction: float, calls_of_a_command: list[str], memory_path: Path
) -> None:
    folder, log = memory_path / "session", memory_path / "log"
    when = round(calls_of_a_command.count(call) * fraction)
    ran = commanded(folder, log, ["-e", f"inject={call}:error={error}:when={when}"])
    assert "(INJECTED)" in log.read_text()
    assert ran.returncode == 5, ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("probebench: cannot ")
    assert "Traceback" not in ran.stderr
    done = commanded(folder, log, [])
    assert done.returncode == 0, done.stderr
    assert verify_folder(constant_rig(), folder).verified


# -- broken drivers, which the checks above must catch -------------------------------------


def all_faults(sweep: Sweep, call: str, rig: Rig, before: Before | None = None) -> list[str]:
    """What the checks find in a broken driver, over some of the calls."""
    found = []
    whens = range(sweep.counts[call] // 2, sweep.counts[call] - 6)
    for when in share(whens, 12):
        injection = Injection(call, "error=EIO", when)
        ran = run_traced(sweep.case, sweep.cut, injection, rig=rig, before=before)
        found += sweep.faults(ran, injection)
        sweep.clear()
    return found


class Swallows(Filesystem):
    """Broken on purpose: an fsync that failed is as good as one that did not."""

    def fsync_file(self, descriptor: int, name: str) -> None:
        with suppress(HostError):
            super().fsync_file(descriptor, name)

    def fsync_folder(self, folder: int, name: str) -> None:
        with suppress(HostError):
            super().fsync_folder(folder, name)


class TriesAgain(Filesystem):
    """Broken on purpose: after an error, the pages that it lost are taken for written."""

    def fsync_file(self, descriptor: int, name: str) -> None:
        with suppress(HostError):
            super().fsync_file(descriptor, name)
            return
        os.fsync(descriptor)


class Forgets(Filesystem):
    """Broken on purpose: what could not be written is left out."""

    def write(self, descriptor: int, data: bytes, name: str) -> None:
        with suppress(HostError):
            super().write(descriptor, data, name)


class SkipsFolders(Filesystem):
    """Broken on purpose: entries are never made durable."""

    def fsync_folder(self, folder: int, name: str) -> None:
        self.before("fsync_folder", name)


@pytest.mark.parametrize(
    ("disk", "call", "words"),
    [
        (Swallows(), "fsync", "success, although a call failed"),
        (Swallows(), "fsync", "was published unsynced"),
        (TriesAgain(), "fsync", "was tried again"),
        (Forgets(), "write", "the folder is not the right one"),
        (SkipsFolders(), "openat", "before an fsync of"),
    ],
)
def test_a_disk_that_hides_a_failure_is_caught(
    disk: Filesystem, call: str, words: str, memory_path: Path
) -> None:
    found = all_faults(Sweep(TOY, memory_path), call, constant_rig(disk))
    assert any(words in fault for fault in found), found


def test_a_driver_that_sends_before_it_publishes_is_caught(memory_path: Path) -> None:
    sweep = Sweep(TOY, memory_path)
    found = all_faults(sweep, "fsync", constant_rig(), before=sends_before_it_publishes)
    assert any("no record sends" in fault for fault in found), found


def test_a_driver_that_does_not_say_why_is_caught(memory_path: Path) -> None:
    def mute() -> None:
        sys.stderr = io.StringIO()

    sweep = Sweep(TOY, memory_path)
    injection = Injection("fsync", "error=EIO", 20)
    ran = run_traced(CASES[TOY], sweep.cut, injection, before=mute)
    assert any("not one sentence" in fault for fault in sweep.faults(ran, injection))
