"""What an operator sees while a session runs: a live view, or lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from probebench.app.drive import TurnSeen
from probebench.kernel.budget import Budget, Charge
from probebench.kernel.canonical import Json, decode
from probebench.kernel.episode import Action, Fault, Rejection

Glance = Callable[[Json], str]


def cause_text(seen: TurnSeen) -> str:
    """What came in a turn, in a word or two."""
    match seen.cause:
        case Action(name=name):
            return name
        case Rejection(code=code):
            return f"rejected: {code}"
        case Fault(kind=kind):
            return f"fault: {kind.value}"
    return "" if seen.task is None else f"computed {seen.task.kind}"


class LineView:
    """One plain line a turn, for pipes and logs."""

    def __init__(self, glance: Glance, write: Callable[[str], None]) -> None:
        self._glance = glance
        self._write = write

    def opened(self, charge: Charge) -> None:
        """Say that the client is awaited."""
        del charge
        self._write("the session is open; waiting for the client")

    def turn(self, seen: TurnSeen) -> None:
        """Write the turn's line."""
        replayed = " (replayed)" if seen.replayed else ""
        self._write(f"turn {seen.turn}{replayed}: {cause_text(seen)}; {self._seen(seen)}")

    def _seen(self, seen: TurnSeen) -> str:
        return self._glance(decode(seen.message)) if seen.message else "no message"


class LiveView:
    """A live picture on a terminal: turn, budget bars, last action, elapsed."""

    def __init__(self, glance: Glance, budget: Budget, console: Console) -> None:
        self._glance = glance
        self._budget = budget
        self._spent: Counter[str] = Counter()
        self._started = time.monotonic()
        self._last = "waiting for the client"
        self._turn = 0
        self._live = Live(
            get_renderable=self._picture, console=console, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        # A terminal that is gone must not take the place of the hang-up that says so.
        with suppress(OSError):
            self._live.stop()

    def opened(self, charge: Charge) -> None:
        """Count what opening the episode spent."""
        self._spent.update(charge)

    def turn(self, seen: TurnSeen) -> None:
        """Take the turn in; the picture follows."""
        self._turn = seen.turn
        self._spent.update(seen.charge)
        glimpse = self._glance(decode(seen.message)) if seen.message else ""
        self._last = f"{cause_text(seen)}; {glimpse}"

    def _picture(self) -> RenderableType:
        bars = Table.grid(padding=(0, 1))
        for name, limit in self._budget.limits.items():
            spent = self._spent[name]
            bars.add_row(
                name,
                ProgressBar(total=max(limit, 1), completed=spent, width=30),
                f"{spent} of {limit}",
            )
        elapsed = time.monotonic() - self._started
        return Group(Text(f"turn {self._turn}, {elapsed:.0f} s"), bars, Text(self._last))
