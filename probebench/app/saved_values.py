"""Checks each saved value of a folder as its turn is replayed."""

from __future__ import annotations

from collections.abc import Callable

from probebench.app import hosted
from probebench.app.drive import TurnSeen
from probebench.app.journal import Check
from probebench.kernel import turn as records
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment, Part
from probebench.kernel.episode import Task
from probebench.kernel.errors import ArtifactError


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
        refit: whether every computation is run again.
        """
        self._environment = environment
        self._inner = inner
        self._same = same
        self._refit = refit
        self._checked = 0
        self._rerun = 0

    def opened(self, charge: Charge) -> None:
        """Nothing is computed yet."""

    def turn(self, seen: TurnSeen) -> None:
        """Check the value of one turn, if it has one."""
        if seen.task is None:
            return
        self._checked += 1
        if seen.task.hosted:
            self._inner(seen.task, seen.value)
            return
        name = records.response_name(seen.turn)
        if self._refit:
            self._run_again(name, seen.task, seen.value)

    def _run_again(self, name: str, task: Task, value: Json) -> None:
        self._rerun += 1
        if not self._same(Part.VALUE, value, self._environment.run(task)):
            raise ArtifactError(name, f"the computation {task.key!r} run again gives another value")

    def summary(self) -> str:
        """What was checked, in words."""
        if not self._checked:
            return "no computed values"
        rerun = (
            f"; {self._rerun} run again, all the same"
            if self._rerun
            else "; none run again (--refit does)"
        )
        return f"{self._checked} computed values are bound to their observations{rerun}"
