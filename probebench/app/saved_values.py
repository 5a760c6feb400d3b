"""Checks each saved value of a folder as its turn is replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probebench.app import hosted
from probebench.app.drive import TurnSeen
from probebench.app.journal import Check
from probebench.kernel import turn as records
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment, Part
from probebench.kernel.episode import Task
from probebench.kernel.errors import ArtifactError

AFFORDED_S = 10.0


def value_check(environment: Environment) -> Check:
    """What a saved value must pass before an episode is handed it."""

    def check(task: Task, value: Json) -> None:
        if task.hosted:
            hosted.require_value(value)
        else:
            environment.check(task, value)

    return check


class SavedValues:
    """An observer of a replay that raises ArtifactError at a value that does not fit."""

    def __init__(
        self,
        environment: Environment,
        inner: Callable[[Task, Json], None],
        same: Callable[[Part, Json, Json], bool],
        *,
        refit: bool,
    ) -> None:
        """inner: verifies the session of a hosted task against its value.
        same: whether a saved and a recomputed value agree.
        refit: whether every computation is run again; otherwise those are
            that take AFFORDED_S together, by their environment's estimate.
        """
        self._environment = environment
        self._inner = inner
        self._same = same
        self._refit = refit
        self._rerun = 0
        self._left_out: list[int] = []  # turns whose computation is not run again
        self._left_s = AFFORDED_S

    def opened(self, charge: Charge) -> None:
        """Nothing is computed yet."""

    def turn(self, seen: TurnSeen) -> None:
        """Check the value of one turn, if it has one."""
        if seen.task is None:
            return
        if seen.task.hosted:
            self._inner(seen.task, seen.value)
            return
        name = records.response_name(seen.turn)
        if self._refit or self._affords(seen.task):
            self._run_again(name, seen.task, seen.value)
        else:
            self._left_out.append(seen.turn)

    def _affords(self, task: Task) -> bool:
        effort_s = self._environment.effort_s(task)
        if effort_s > self._left_s:
            return False
        self._left_s -= effort_s
        return True

    def _run_again(self, name: str, task: Task, value: Json) -> None:
        self._rerun += 1
        if not self._same(Part.VALUE, value, self._environment.run(task)):
            raise ArtifactError(name, f"the computation {task.key!r} run again gives another value")

    def summary(self) -> str:
        """What was checked, in words."""
        checked = self._rerun + len(self._left_out)
        if not checked:
            return "no computed values"
        rerun = f"{self._rerun} run again, all the same" if self._rerun else "none run again"
        if self._rerun and self._left_out:
            rerun = f"{rerun}, but not those of turns {_spans(self._left_out)}"
        advice = " (--refit does)" if self._left_out else ""
        return f"{checked} computed values are bound to their observations; {rerun}{advice}"


def _spans(numbers: Sequence[int]) -> str:
    """Rising numbers as text, neighbours taken together: "3, 7 to 9"."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    pairs = zip(starts, ends, strict=True)
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in pairs)
