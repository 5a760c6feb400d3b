"""What a probe of this machine is given, and what it answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from probebench.host.filesystem import Filesystem

RUN_TIMEOUT_S = 30.0
MOUNTS = Path("/proc/self/mountinfo")


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    NOTE = "note"  # holds in part, or not for everybody
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """What a probe saw, in words."""

    level: Level
    seen: str


def sound(seen: str) -> Finding:
    """All is as it should be."""
    return Finding(Level.OK, seen)


def caution(seen: str) -> Finding:
    """Something an operator should know."""
    return Finding(Level.NOTE, seen)


def broken(seen: str) -> Finding:
    """It does not hold here."""
    return Finding(Level.FAILED, seen)


class System:
    """The calls of the probes that the store has no step for; a test breaks one."""

    def open(self, path: Path, flags: int) -> int:
        """A descriptor, as os.open gives it."""
        return os.open(path, flags)

    def mounts(self) -> str:
        """The mounts of this process, as Linux lists them; "" where it does not."""
        try:
            return MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""

    def space(self, path: Path) -> os.statvfs_result:
        """Blocks and inodes of the file system below ``path``."""
        return os.statvfs(path)

    def monotonic(self) -> float:
        """Seconds since an arbitrary instant."""
        return time.monotonic()

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command of the suite's own to its end; its two outputs come together."""
        return subprocess.run(  # noqa: S603 - a fixed command, without a shell
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=RUN_TIMEOUT_S,
            check=False,
        )

    def python(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in another process of this interpreter."""
        return self.run([sys.executable, "-c", program, *words])


@dataclass(frozen=True)
class Place:
    """Where a probe works.

    folder: an empty folder of its own, on the file system that is examined.
    """

    folder: Path
    filesystem: Filesystem = field(default_factory=Filesystem)
    system: System = field(default_factory=System)


Probe: TypeAlias = Callable[[Place], Finding]
