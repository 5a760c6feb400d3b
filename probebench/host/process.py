"""The driver's own process: who may look into it, and whose orphans it takes in.

Linux alone has these calls; elsewhere nothing is done, as docs/security.md says.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from probebench.kernel.errors import HostError

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
PAUSE_S = 0.002

PROCESSES = Path("/proc")


def shield() -> None:
    """Keep other processes of the same user out, and take in orphans.

    Afterwards environment, memory, descriptors and maps of this process can
    be read by root alone, nobody else can trace it, and it leaves no core
    file.  Descendants whose parents are gone become children of this process,
    so that ``end_orphans`` finds them.  Programs that it starts have neither.
    Raises HostError.
    """
    if sys.platform == "linux":
        _control(PR_SET_DUMPABLE, 0)
        _control(PR_SET_CHILD_SUBREAPER, 1)


def takes_in_orphans() -> bool:
    """Whether orphans among the descendants of this process become its children."""
    if sys.platform != "linux":
        return False
    answer = ctypes.c_int()
    _control(PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer))
    return bool(answer.value)


def children() -> set[int]:
    """The processes whose parent this one is, dead ones that wait to be reaped too."""
    found = set()
    for path in PROCESSES.iterdir():
        if path.name.isdigit() and _parent_of(path) == os.getpid():
            found.add(int(path.name))
    return found


def end_orphans(bystanders: Collection[int], within_s: float) -> None:
    """Kill and reap every child that is not among ``bystanders``.

    What they leave behind in turn becomes a child, and is ended too.  Raises
    HostError for one that is there after ``within_s``.
    """
    deadline = time.monotonic() + within_s
    while left := children().difference(bystanders):
        if time.monotonic() >= deadline:
            numbers = ", ".join(map(str, sorted(left)))
            raise HostError(f"processes that the client left do not end on SIGKILL: {numbers}")
        for pid in left:
            _end(pid)
        time.sleep(PAUSE_S)


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _parent_of(path: Path) -> int | None:
    try:
        status = (path / "stat").read_bytes()
    except OSError:  # it has ended meanwhile
        return None
    # The name of a process stands in parentheses and may hold anything.
    return int(status.rpartition(b")")[2].split()[1])


def _control(option: int, argument: int) -> None:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if prctl(option, argument, 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostError(f"the system refuses to protect the driver (prctl {option}): {reason}")
