"""Rigs for tests: constant nonce and clock, toy environments, clients in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from probebench.app.entry import Entry
from probebench.app.registry import default_registry
from probebench.app.rig import Rig, machine_rig
from probebench.host.filesystem import Filesystem
from probebench.kernel.canonical import decode
from probebench.kernel.episode import Ask, Final
from probebench.kernel.turn import Answer
from tests.toys.breeder import Breeder
from tests.toys.thermometer import Thermometer

NONCE = bytes(range(32))
Reply = Callable[[Ask, dict[str, Any]], bytes]


def registry() -> dict[str, Entry]:
    """The suite's environments and the toys."""
    toys = {"thermometer": Entry(Thermometer()), "breeder": Entry(Breeder())}
    return {**default_registry(), **toys}


class ConstantClock:
    """Every duration is zero, so that journals can be compared bytewise."""

    def monotonic(self) -> float:
        return 0.0


@cache
def _machine() -> tuple[dict[str, Any], dict[str, Any]]:
    """What this machine says of itself: asked once, not once a session."""
    rig = machine_rig({})
    return rig.runtime(), rig.display_runtime()


def constant_rig(
    filesystem: Filesystem | None = None, entries: Mapping[str, Entry] | None = None
) -> Rig:
    """A rig whose sessions give the same bytes each time they are run."""
    runtime, display = _machine()
    return replace(
        machine_rig(registry() if entries is None else entries),
        runtime=lambda: runtime,
        display_runtime=lambda: display,
        filesystem=Filesystem() if filesystem is None else filesystem,
        clock=ConstantClock(),
        entropy=lambda count: NONCE[:count],
        snapshot=lambda: {"probebench_stand_in.py": b"# one small file keeps tests quick\n"},
    )


class RepliesInProcess:
    """Clients that are a function of the current request alone."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.messages: list[bytes] = []  # all that was sent

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, dict[str, float]]:
        self.messages.append(message)
        return Answer(self._reply(ask, decode(message))), {
            "input_wait_s": 0.0,
            "deadline_s": ask.deadline_s,
        }

    def farewell(self, final: Final, message: bytes) -> None:
        if message:
            self.messages.append(message)

    def nested(self) -> RepliesInProcess:
        return RepliesInProcess(self._reply)

    def close(self) -> None:
        return


class KilledError(BaseException):
    """Stands for a SIGKILL: nothing catches it, nothing is tidied up."""


class Steps(Filesystem):
    """Counts durable steps; dies before the step ``fatal``, counted from 0."""

    def __init__(self, fatal: int | None = None) -> None:
        self.fatal = fatal
        self.seen: list[tuple[str, str]] = []

    def before(self, step: str, name: str) -> None:
        if len(self.seen) == self.fatal:
            raise KilledError
        self.seen.append((step, name))


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative path."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@contextmanager
def writable_again(folder: Path) -> Iterator[None]:
    """Make a tree read-only, and writable again for the cleanup."""
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(0o700 if path.is_dir() else 0o600)
