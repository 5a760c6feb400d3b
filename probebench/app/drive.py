"""The one turn loop: session, resume and verify are the same call.

session = replay(nothing)       + live
resume  = replay(saved records) + live
verify  = replay(saved records) + the end
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from probebench.app.journal import Journal
from probebench.host.channel import Clock
from probebench.kernel import turn as records
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json
from probebench.kernel.episode import (
    Ask,
    Cause,
    Episode,
    Final,
    Rejection,
    Task,
    Value,
)
from probebench.kernel.errors import ActionRejectedError, UnfinishedError


class Source(Protocol):
    """Where answers and values come from once the journal has ended."""

    def answer(self, ask: Ask, message: bytes, *, sent_before: bool) -> tuple[records.Answer, Json]:
        """Have a client answer.  Returns the answer and its timing.

        sent_before: an earlier process may already have sent this message.
        """
        ...

    def value(self, task: Task) -> Json:
        """Have a computation done."""
        ...


class End:
    """The source of verification: beyond the journal there is nothing."""

    def answer(self, ask: Ask, message: bytes, *, sent_before: bool) -> tuple[records.Answer, Json]:
        """Raise UnfinishedError."""
        del message, sent_before
        raise UnfinishedError(
            "turns", f"the journal ends at ask {ask.key!r}; the session is unfinished"
        )

    def value(self, task: Task) -> Json:
        """Raise UnfinishedError."""
        raise UnfinishedError(
            "turns", f"the journal ends at task {task.key!r}; the session is unfinished"
        )


@dataclass(frozen=True)
class TurnSeen:
    """One settled turn, for whoever watches: what came and what follows."""

    turn: int
    cause: Cause | None
    task: Task | None
    value: Json
    charge: Charge
    message: bytes
    replayed: bool


class Observer(Protocol):
    """Whoever watches a session; it sees what is public and decides nothing."""

    def opened(self, charge: Charge) -> None:
        """The episode is open, and spent this."""
        ...

    def turn(self, seen: TurnSeen) -> None:
        """A turn has been settled."""
        ...


@dataclass
class Driven:
    """What a driven episode came to.

    sessions: manifest digests of the sessions within it, by folder.
    """

    final: Final
    spent: dict[str, int]
    turns: int
    sessions: dict[str, str]


def drive(
    episode: Episode, source: Source, journal: Journal, clock: Clock, observer: Observer
) -> Driven:
    """Run an episode to its end through the journal and then ``source``."""
    spent = Counter(episode.opening_charge)
    observer.opened(episode.opening_charge)
    sessions: dict[str, str] = {}
    turn = 0
    while not isinstance(effect := episode.pending(), Final):
        turn += 1
        seen = _Turn(episode, source, journal, clock, turn).run(effect)
        spent.update(seen.charge)
        if seen.task is not None and seen.task.hosted:
            sessions[records.task_folder(seen.task.key)] = seen.value["manifest_sha256"]
        observer.turn(seen)
    return Driven(effect, dict(spent), turn, sessions)


class _Turn:
    """One turn: at most one answer, at most one value, one response record."""

    def __init__(
        self, episode: Episode, source: Source, journal: Journal, clock: Clock, turn: int
    ) -> None:
        self._episode = episode
        self._source = source
        self._journal = journal
        self._clock = clock
        self._turn = turn
        self._charge: Counter[str] = Counter()
        self._timing: dict[str, Json] = {}
        self._started = clock.monotonic()

    def run(self, effect: Ask | Task) -> TurnSeen:
        """Perform the pending effect, apply what came, settle the response."""
        cause: Cause | None = None
        value: records.SavedValue | None = None
        task: Task | None = None
        if isinstance(effect, Ask):
            cause = self._answered(effect)
            self._apply(cause)
        if isinstance(pending := self._episode.pending(), Task):
            task = pending
            value = self._computed(task)
            self._apply(Value(value.value))
        self._respond(cause, value)
        return TurnSeen(
            self._turn,
            cause,
            task,
            None if value is None else value.value,
            self._charge,
            self._journal.message,
            self._journal.message_was_saved,
        )

    def _answered(self, ask: Ask) -> Cause:
        answer = self._journal.answer(self._turn, ask)
        if answer is None:
            journal = self._journal
            answer, timing = self._source.answer(
                ask, journal.message, sent_before=journal.message_was_saved
            )
            self._started = self._clock.monotonic()
            journal.keep_answer(self._turn, ask, answer, timing)
        if answer.fault is not None:
            return answer.fault
        try:
            return self._episode.parse(ask, answer.data)
        except ActionRejectedError as error:
            return Rejection(error.code, error.message, error.detail)

    def _computed(self, task: Task) -> records.SavedValue:
        saved = self._journal.value(self._turn, task)
        if saved is None:
            started = self._clock.monotonic()
            saved = records.SavedValue.of(task, self._source.value(task))
            self._timing["task_s"] = self._clock.monotonic() - started
        return saved

    def _apply(self, cause: Cause) -> None:
        self._charge.update(self._episode.cost(cause))
        self._episode.apply(cause)

    def _respond(self, cause: Cause | None, value: records.SavedValue | None) -> None:
        journal = self._journal
        document = records.response_document(
            self._turn,
            value,
            cause.code if isinstance(cause, Rejection) else None,
            self._charge,
            self._episode.pending(),
            journal.head,
        )
        elapsed = self._clock.monotonic() - self._started - self._timing.get("task_s", 0.0)
        journal.settle(
            records.response_name(self._turn),
            document,
            {"task_s": 0.0, **self._timing, "driver_s": elapsed},
        )
