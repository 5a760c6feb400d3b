"""What a session runs on, as arguments: nothing below reads a global."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import probebench
from probebench.app.drive import Observer, TurnSeen
from probebench.app.registry import Registry, default_registry
from probebench.host import runtime, snapshot
from probebench.host.channel import Clock, SystemClock
from probebench.host.filesystem import Filesystem
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Ask, Final
from probebench.kernel.turn import Answer


class Stop(Protocol):
    """Signals that ask the driver to stop at the next safe point."""

    def check(self) -> None:
        """Raise InterruptedBySignalError if one has come."""
        ...


class Clients(Protocol):
    """The programs that answer asks."""

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Json]:
        """Send a message and await its answer; returns it with its timing."""
        ...

    def farewell(self, final: Final, message: bytes) -> None:
        """Send a last message; a client that is gone is no error."""
        ...

    def nested(self) -> Clients:
        """Clients of their own for a session within this one."""
        ...

    def close(self) -> None:
        """End every process that was started, within a bounded time."""
        ...


class Unwatched:
    """The observer of a session that nobody watches."""

    def opened(self, charge: Charge) -> None:
        """Ignore it."""

    def turn(self, seen: TurnSeen) -> None:
        """Ignore the turn."""


class NeverStops:
    """For verification and tests: no signal is awaited."""

    def check(self) -> None:
        """Return."""


@dataclass(frozen=True)
class Rig:
    """The machine and the composition, both replaceable by a test.

    entropy: (count) to that many unpredictable bytes.
    runtime, display_runtime: what the figures, and the PNG files, depend on.
    snapshot: the package's source files by path.
    sandbox: what the clients run in, as study.json records it; None for nothing.
    """

    registry: Registry
    filesystem: Filesystem
    clock: Clock
    entropy: Callable[[int], bytes]
    runtime: Callable[[], dict[str, Json]]
    display_runtime: Callable[[], dict[str, Json]]
    snapshot: Callable[[], dict[str, bytes]]
    stop: Stop = field(default_factory=NeverStops)
    observer: Observer = field(default_factory=Unwatched)
    sandbox: Json = None


def machine_rig(registry: Registry | None = None) -> Rig:
    """This machine, computing in one thread, and this suite's environments."""
    runtime.use_one_thread()
    return Rig(
        registry=default_registry() if registry is None else registry,
        filesystem=Filesystem(),
        clock=SystemClock(),
        entropy=secrets.token_bytes,
        runtime=runtime.capture,
        display_runtime=runtime.capture_display,
        snapshot=lambda: snapshot.capture(Path(probebench.__file__).parent),
    )
