"""What an environment supplies to the kernel; five of them share one driver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from probebench.kernel.budget import Budget
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Episode, Final, Task
from probebench.kernel.study import Study


class Part(StrEnum):
    """What is compared when a folder is checked under another runtime."""

    MESSAGE = "message"
    VALUE = "value"
    EVALUATION = "evaluation"


class Environment(Protocol):
    """The instrument, its rules and its hidden truth, behind six questions.

    Subclass it: the methods with a body are defaults that a small environment
    keeps.
    packages: distributions that its figures depend on besides those that the
        runtime of every study lists.
    policies: versions, by name, of rules of its own that a session must not
        change on the way.  They are frozen beside those of packages.
    """

    id: str
    packages: Sequence[str] = ()
    policies: Mapping[str, str] = MappingProxyType({})

    def configure(self, config: Json) -> None:
        """Check a configuration.  Raises ConfigError naming each faulty field."""
        ...

    def budget(self, study: Study) -> Budget:
        """The limits of one episode, by resource name."""
        ...

    def open(self, study: Study, nonce: bytes) -> Episode:
        """Begin an episode.  Everything random in the world comes from the
        study; ``nonce`` only makes request identifiers unguessable.
        """
        ...

    def evaluate(self, study: Study, final: Final) -> Json:
        """Judge a finished episode by the hidden truth; pure."""
        ...

    def run(self, task: Task) -> Json:
        """Compute the value of a task that is not hosted; pure."""
        raise LookupError(f"environment {self.id} has no task of kind {task.kind!r}")

    def check(self, task: Task, value: Json) -> None:
        """Check cheaply that ``value`` belongs to ``task``.

        Raises ValueError with a sentence that says what does not fit.
        """
        del task, value

    def effort_s(self, task: Task) -> float:
        """About how long ``run`` takes, seconds.

        Verification runs again what it can afford.  The default: nothing.
        """
        del task
        return math.inf

    def agree(self, part: Part, saved: Json, recomputed: Json) -> bool:
        """Whether a difference is within what another runtime may cause."""
        del part
        return bool(saved == recomputed)

    def secrets(self, study: Study, evaluation: Json) -> Sequence[Json]:
        """Every hidden value, for the tests that walk public messages."""
        del study, evaluation
        return ()
