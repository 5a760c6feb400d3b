"""Each probe passes where the step does what it says, and reports a step that does not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probebench.host import folder_probes as disk
from probebench.host import keys, machine_probes, runtime
from probebench.host import machine_probes as machine
from probebench.host.filesystem import Filesystem
from probebench.host.probing import Finding, Level, Place, Probe, System, broken
from probebench.kernel.errors import HostError


def report(probe: Probe, place: Place) -> Finding:
    """As the doctor takes it: what a step raises is a finding too."""
    try:
        return probe(place)
    except (HostError, OSError, subprocess.TimeoutExpired) as error:
        return broken(str(error))


PORTABLE = [
    disk.exclusive_creation,
    disk.hard_links,
    disk.fsync_of_a_file,
    disk.fsync_of_a_folder,
    disk.durable_publish,
    disk.lock_within_a_process,
    disk.lock_between_processes,
    disk.links_not_followed,
    disk.private_modes,
    disk.letter_case,
    machine.python,
    machine.packages,
    machine.blas,
    machine.clock,
    machine.signatures,
    machine.terminal,
]


@pytest.mark.parametrize("probe", PORTABLE, ids=lambda probe: probe.__name__)
def test_a_probe_passes_where_the_tests_run(probe: Probe, tmp_path: Path) -> None:
    found = report(probe, Place(tmp_path))
    assert found.level is Level.OK, found.seen


# -- file systems that do not do what they say -------------------------------------------


class OpensWhatIsThere(Filesystem):
    """O_EXCL is ignored, as by some old network file systems."""

    def open_temporary(self, folder: int, base: str, name: str) -> int:
        return os.open(base, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)


class LinkReplaces(Filesystem):
    """A link takes a name from another file."""

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        if base in os.listdir(folder):
            os.unlink(base, dir_fd=folder)
        super().link(folder, temporary, base, name)


class LinkSucceedsAndDoesNothing(Filesystem):
    """A link to a taken name is not refused."""

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        if base not in os.listdir(folder):
            super().link(folder, temporary, base, name)


class LinkCopies(Filesystem):
    """A link is a copy."""

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        here = Path(f"/proc/self/fd/{folder}")
        (here / base).write_bytes((here / temporary).read_bytes())


class LinkRefusedButWritten(Filesystem):
    """A refused link has changed the file nevertheless."""

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        if base in os.listdir(folder):
            Path(f"/proc/self/fd/{folder}/{base}").write_bytes(b"changed")
        super().link(folder, temporary, base, name)


class UnlinkForgets(Filesystem):
    """A name that is taken away stays."""

    def unlink(self, folder: int, temporary: str, name: str) -> None:
        del folder


class Refuses(Filesystem):
    def __init__(self, step: str, number: int) -> None:
        self.fatal, self.number = step, number

    def before(self, step: str, name: str) -> None:
        if step == self.fatal:
            raise OSError(self.number, os.strerror(self.number))


class WritesZeros(Filesystem):
    """What is read back is not what was written."""

    def write_some(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, b"\1" * len(data))


class OpenToAll(Filesystem):
    """Modes are those of the mount, as on vfat."""

    def open_temporary(self, folder: int, base: str, name: str) -> int:
        descriptor = super().open_temporary(folder, base, name)
        os.fchmod(descriptor, 0o644)
        return descriptor


class FoldersOpenToAll(Filesystem):
    def make_folder(self, folder: int, base: str, name: str) -> None:
        super().make_folder(folder, base, name)
        Path(f"/proc/self/fd/{folder}/{base}").chmod(0o755)


class HoldsNoLock(System):
    """A lock is given to everybody: what flock does where it is not passed on."""

    def open(self, path: Path, flags: int) -> int:
        return os.open("/dev", flags)  # another folder, whose lock is free

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 0, "", "")


class KeepsTheLock(System):
    """A lock is not given back."""

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, disk.LOCK_BUSY, "", "")


class FollowsLinks(System):
    """O_NOFOLLOW is ignored."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags & ~os.O_NOFOLLOW)


class Space(System):
    def __init__(self, free: int, files: int = 10**6) -> None:
        self.free, self.files = free, files

    def space(self, path: Path) -> Any:
        return SimpleNamespace(f_bavail=self.free, f_frsize=1, f_files=10**7, f_favail=self.files)


BROKEN_DISKS: dict[str, tuple[Probe, Filesystem | System, str]] = {
    "O_EXCL ignored": (disk.exclusive_creation, OpensWhatIsThere(), "name that was taken"),
    "no new files": (
        disk.exclusive_creation,
        Refuses("open_temporary", errno.EROFS),
        "Read-only file system",
    ),
    "a link replaces": (disk.hard_links, LinkReplaces(), "not refused with EEXIST"),
    "a link does nothing": (disk.hard_links, LinkSucceedsAndDoesNothing(), "not refused"),
    "a link copies": (disk.hard_links, LinkCopies(), "second name"),
    "a refused link writes": (disk.hard_links, LinkRefusedButWritten(), "changed the file"),
    "no links": (disk.hard_links, Refuses("link", errno.EPERM), "cannot link"),
    "unlink forgets": (disk.hard_links, UnlinkForgets(), "still there"),
    "no fsync of files": (disk.fsync_of_a_file, Refuses("fsync_file", errno.EIO), "Input/output"),
    "no fsync of folders": (
        disk.fsync_of_a_folder,
        Refuses("fsync_folder", errno.EINVAL),
        "Invalid argument",
    ),
    "publish fails": (disk.durable_publish, Refuses("link", errno.EPERM), "cannot link"),
    "other bytes": (disk.durable_publish, WritesZeros(), "something else"),
    "modes of files": (disk.private_modes, OpenToAll(), "file has mode 0644"),
    "modes of folders": (disk.private_modes, FoldersOpenToAll(), "folder has mode 0755"),
    "two locks": (disk.lock_within_a_process, HoldsNoLock(), "held at once"),
    "two locks of two": (disk.lock_between_processes, HoldsNoLock(), "gets a lock that is held"),
    "a lock is kept": (disk.lock_between_processes, KeepsTheLock(), "exit codes 9, 9"),
    "links followed": (disk.links_not_followed, FollowsLinks(), "O_NOFOLLOW"),
    "full": (disk.free_space, Space(10 * disk.MIB), "at least 64 MiB"),
    "no inodes": (disk.free_space, Space(10**12, 7), "room for 7 files"),
}


@pytest.mark.parametrize("kind", BROKEN_DISKS)
def test_a_file_system_that_does_not_do_what_it_says_is_reported(kind: str, tmp_path: Path) -> None:
    probe, part, words = BROKEN_DISKS[kind]
    broken_part = {"system" if isinstance(part, System) else "filesystem": part}
    found = report(probe, Place(tmp_path, **broken_part))  # type: ignore[arg-type]
    assert found.level is Level.FAILED
    assert words in found.seen


def test_names_that_are_one_but_for_their_case_are_reported(tmp_path: Path) -> None:
    (tmp_path / "CASE").write_bytes(b"")  # as a file system that folds case would answer
    assert report(disk.letter_case, Place(tmp_path)).level is Level.FAILED


def test_little_space_is_a_note(tmp_path: Path) -> None:
    found = disk.free_space(Place(tmp_path, system=Space(500 * disk.MIB)))
    assert found.level is Level.NOTE
    assert "500 MiB" in found.seen


def test_a_file_system_that_counts_no_inodes_has_enough_of_them(tmp_path: Path) -> None:
    class CountsNone(Space):
        def space(self, path: Path) -> Any:
            return SimpleNamespace(f_bavail=10**12, f_frsize=1, f_files=0, f_favail=0)

    assert disk.free_space(Place(tmp_path, system=CountsNone(0))).level is Level.OK


def test_a_file_system_without_symbolic_links_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert disk.links_not_followed(Place(tmp_path)).level is Level.OK


def test_the_lock_of_a_probe_is_really_held_while_the_other_process_tries(tmp_path: Path) -> None:
    class Watches(System):
        tried: list[int]

        def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
            ran = super().run(command)
            self.tried.append(ran.returncode)
            return ran

    system = Watches()
    system.tried = []
    assert disk.lock_between_processes(Place(tmp_path, system=system)).level is Level.OK
    assert system.tried == [disk.LOCK_BUSY, 0]


# -- machines that lack something ----------------------------------------------------------


class Clock(System):
    def __init__(self, reading: Callable[[int], float]) -> None:
        self.reading, self.count = reading, 0

    def monotonic(self) -> float:
        self.count += 1
        return self.reading(self.count)


@pytest.mark.parametrize(
    ("reading", "words"),
    [(lambda n: -float(n), "goes back"), (lambda n: 7.0, "stands still")],
)
def test_a_clock_that_is_none_is_reported(
    reading: Callable[[int], float], words: str, tmp_path: Path
) -> None:
    found = machine.clock(Place(tmp_path, system=Clock(reading)))
    assert found.level is Level.FAILED
    assert words in found.seen


def test_an_old_python_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_probes, "OLDEST_PYTHON", (99, 0))
    found = machine.python(Place(tmp_path))
    assert found.level is Level.FAILED
    assert "99.0 or later" in found.seen


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_probes, "NEEDED", ("numpy", "no-such-package"))
    found = machine.packages(Place(tmp_path))
    assert found == broken("not installed: no-such-package")


PROJECT = """
[tool.uv]
constraint-dependencies = ["numpy==0.0.1", "scipy>=1", "contourpy==1 ; python_version < '3'"]
"""


def test_versions_are_compared_with_the_pins_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert machine.pinned_versions(tmp_path / "pyproject.toml") == {"numpy": "0.0.1"}
    monkeypatch.setattr(machine, "pinned_versions", lambda _: {"numpy": "0.0.1", "rich": "0"})
    found = machine.pins(Place(tmp_path))
    assert found.level is Level.NOTE
    assert "(pinned 0.0.1)" in found.seen


def test_this_checkout_has_pins(repository: Path) -> None:
    assert machine.pinned_versions(repository / "pyproject.toml")["numpy"]


@pytest.mark.parametrize("content", [None, "not toml = ", "[tool]"])
def test_without_a_checkout_there_is_nothing_to_compare(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "pyproject.toml").write_text(content)
    assert machine.pinned_versions(tmp_path / "pyproject.toml") == {}
    monkeypatch.setattr(machine, "pinned_versions", lambda _: {})
    assert "no pins" in machine.pins(Place(tmp_path)).seen


def test_a_blas_in_several_threads_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = {"version": "1", "architecture": "x", "threading_layer": "y", "num_threads": 8}
    monkeypatch.setattr(runtime, "capture", lambda: {"blas": {"openblas": described}})
    found = machine.blas(Place(tmp_path))
    assert found.level is Level.FAILED
    assert "8" in found.seen
    monkeypatch.setattr(runtime, "capture", lambda: {"blas": {}})
    assert machine.blas(Place(tmp_path)).level is Level.NOTE


def test_missing_signatures_say_how_to_install_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert machine.signatures(Place(tmp_path)) == broken(keys.INSTALL)


class Answers(System):
    """Every command that is run ends like this."""

    def __init__(self, code: int, output: str = "") -> None:
        self.code, self.output = code, output

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, self.code, self.output, "")


def test_a_driver_that_stays_dumpable_is_reported(tmp_path: Path) -> None:
    found = machine.shielded_driver(Place(tmp_path, system=Answers(1, "a\nHostError: refused\n")))
    assert found.level is Level.FAILED
    assert "HostError: refused" in found.seen


@pytest.mark.parametrize(("user", "level"), [(0, Level.NOTE), (1000, Level.OK)])
def test_root_reads_a_shielded_driver_too(
    user: int, level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert machine.shielded_driver(Place(tmp_path, system=Answers(0))).level is level


def test_what_is_no_terminal_gets_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert "a line a turn" in machine.terminal(Place(tmp_path)).seen


def test_a_terminal_gets_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((77, 24)))
    assert "77 columns" in machine.terminal(Place(tmp_path)).seen


# -- the real system -----------------------------------------------------------------------


def test_a_command_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probebench.host.probing.RUN_TIMEOUT_S", 0.2)
    found = report(lambda place: _slept(place.system), Place(tmp_path))
    assert found.level is Level.FAILED
    assert "timed out" in found.seen


def _slept(system: System) -> Finding:
    system.python("import time; time.sleep(60)")
    raise AssertionError("the command was awaited")


def test_the_system_is_this_one(tmp_path: Path) -> None:
    system = System()
    assert system.space(tmp_path).f_bavail > 0
    assert system.monotonic() <= time.monotonic()
    assert system.python("print('a'); raise SystemExit(3)").returncode == 3
