"""Bubblewrap: a client that sees its own program, a Python and nothing else.

Everything is unshared: users, processes, network, IPC, host name, control
groups.  The client has no capability and can gain none, its root is read-only,
what it may write lies in bounded memory, and it ends with the driver.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from probebench.kernel.canonical import Json
from probebench.kernel.errors import SandboxUnavailableError

LAUNCHER = "bwrap"
OLDEST_VERSION = (0, 8, 0)  # the first with --disable-userns
INSTALL = "install bubblewrap 0.8 or later (Debian: apt install bubblewrap), or leave --sandbox out"

HOME = "/client"
SCRATCH = (HOME, "/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own
SCRATCH_BYTES = 64 * 1024 * 1024  # of each
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"

MAX_OPEN_FILES = 1024
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_ADDRESS_SPACE_BYTES = 16 * 1024 * 1024 * 1024

# A limit that cannot be set is lower already.  Units: blocks of 512 bytes, KiB.
ENTRANCE = f"""
ulimit -c 0
ulimit -n {MAX_OPEN_FILES} 2>/dev/null
ulimit -f {MAX_FILE_BYTES // 512} 2>/dev/null
ulimit -v {MAX_ADDRESS_SPACE_BYTES // 1024} 2>/dev/null
exec "$@"
"""

ISOLATION = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--hostname",
    "client",
    "--clearenv",
)


@dataclass(frozen=True)
class View:
    """What of this machine's files the client sees, read-only, at their own paths.

    folders, files: paths of the system, the interpreter and the operator.
    links: (path, target) of symbolic links.
    emptied: folders of which only ``folders`` and ``files`` within show.
    given: those of ``folders`` and ``files`` that the operator named.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    emptied: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def shows(self, path: str) -> bool:
        """Whether a path lies at or below something that the client sees."""
        return any(is_within(path, shown) for shown in (*self.folders, *self.files))


def is_within(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies below it; both absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@dataclass(frozen=True)
class Sandbox:
    """How every client of a driver is started.

    launcher: absolute path of bwrap.  version: as bwrap says it.
    isolation: the arguments that close things; replaced by tests alone.
    """

    launcher: str
    version: str
    view: View
    isolation: tuple[str, ...] = field(default=ISOLATION)

    @property
    def record(self) -> dict[str, Json]:
        """What study.json says of it."""
        return {
            "launcher": LAUNCHER,
            "version": self.version,
            "binds": list(self.view.given),
            "scratch_bytes": SCRATCH_BYTES,
        }

    def quarters(self, argv: Sequence[str], environment: Mapping[str, str]) -> SandboxQuarters:
        """A place for one process.  Raises OSError."""
        return SandboxQuarters(self, argv, environment)

    def arguments(self, environment: Mapping[str, str]) -> list[str]:
        """What bwrap is told, but for the program."""
        return [*self.isolation, *_mounts(self.view), *_environment(environment)]


def find_launcher(search: str | None = None) -> tuple[str, str]:
    """Path and version of bwrap.  Raises SandboxUnavailableError.

    search: folders as in PATH, os.environ's unless given.
    """
    path = shutil.which(LAUNCHER, path=search)
    if path is None:
        raise SandboxUnavailableError(f"the sandbox needs bwrap, which is not installed; {INSTALL}")
    said = _output([path, "--version"])
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", said)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST_VERSION:
        raise SandboxUnavailableError(f"{path} is {said!r:.80}, which is too old; {INSTALL}")
    return path, numbers[0]


def _output(argv: Sequence[str]) -> str:
    try:
        ran = subprocess.run(argv, capture_output=True, check=False, timeout=10, env={})  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailableError(f"{argv[0]} cannot be run ({error}); {INSTALL}") from None
    return ran.stdout.decode("utf-8", "replace").strip()


class SandboxQuarters:
    """One process within a sandbox.

    The arguments reach bwrap through a descriptor: its command line can be
    read within, and they name paths of this machine and hold the environment.
    """

    def __init__(
        self, sandbox: Sandbox, argv: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        words = sandbox.arguments(environment)
        self._words = _memory_file("".join(f"{word}\0" for word in words).encode())
        self._status, self._status_end = os.pipe()
        os.set_blocking(self._status, False)
        self._said = b""
        self.folder = "/"
        self.environment: Mapping[str, str] = {}
        self.descriptors: Sequence[int] = (self._words, self._status_end)
        options = ("--args", str(self._words), "--json-status-fd", str(self._status_end))
        self.argv: Sequence[str] = (
            sandbox.launcher,
            *options,
            "--",
            *("/bin/sh", "-c", ENTRANCE, "sh"),
            *argv,
        )

    def entered(self, pid: int) -> None:
        """Close our copies; the end of the process closes the others."""
        del pid
        self._close_given()

    def begun(self) -> bool:
        """Whether bwrap reports the end of a program that it started."""
        with suppress(BlockingIOError):
            self._said += os.read(self._status, 4096)
        return b'"exit-code"' in self._said

    def vacate(self) -> None:
        """Close what is open."""
        self._close_given()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1

    def _close_given(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = ()


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("sandbox")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _mounts(view: View) -> Iterable[str]:
    for path, target in view.links:
        yield from ("--symlink", target, path)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for folder in SCRATCH:
        yield from ("--size", str(SCRATCH_BYTES), "--tmpfs", folder)
    # A folder before what lies in it; an emptied one hides what was mounted before.
    for path in sorted({*view.folders, *view.files, *view.emptied}, key=_depth):
        if path in view.emptied:
            yield from ("--tmpfs", path)
        else:
            yield from ("--ro-bind", path, path)
    # Root outside is root for the settings below /proc/sys, whatever its
    # capabilities here; bwrap leaves them writable.
    for path in (*view.emptied, "/dev", "/proc", "/"):
        yield from ("--remount-ro", path)
    yield from ("--chdir", HOME)


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _environment(environment: Mapping[str, str]) -> Iterable[str]:
    path = f"{Path(sys.executable).parent}:{SEARCH_PATH}"
    own = {"HOME": HOME, "TMPDIR": HOME, "PATH": path}
    for name, value in {**environment, **own}.items():
        yield from ("--setenv", name, value)
