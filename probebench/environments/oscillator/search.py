"""The state of a search: what was proposed, what it scored and what it cost.

A search is fed one attempt at a time.  Each ends as a candidate (a new class,
scored), a duplicate (a class that the archive has: it costs the attempt and no
evaluation) or a rejection (no valid topology).  Scores may be shared between
searches by key; what they cost is charged to each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Protocol

from probebench.environments.oscillator.scoring import score_task_spec
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json
from probebench.wire.oscillator import Edges, dimension, edges_of, key_of
from probebench.wire.oscillator_structure import structure

ATTEMPTS_PER_ACCEPTED = 8


@dataclass(frozen=True)
class SearchLimits:
    """What every arm is given alike.

    accepted: candidates to reach.
    inner_budget: inner evaluations, kinetic vectors of the train set, of each.
    holdout: kinetic vectors of the holdout set for each; counted apart.
    """

    accepted: int = 64
    inner_budget: int = 256
    holdout: int = 1024

    @property
    def attempts(self) -> int:
        """The most attempts: eight times the candidates."""
        return ATTEMPTS_PER_ACCEPTED * self.accepted


@dataclass(frozen=True)
class Candidate:
    """An accepted class.

    attempt: that proposed it, from 0.
    train_oscillating, holdout_oscillating: vectors under which it oscillates.
    best: the diagnostic of ``run_score_task``.
    """

    attempt: int
    key: str
    train_oscillating: int
    holdout_oscillating: int
    best: Json


@dataclass
class Search:
    """Archive and counters of one arm.

    duplicates, rejected: the keys in the order of their attempts; a rejected
        proposal that is no nine digits has the key "".
    """

    limits: SearchLimits
    candidates: list[Candidate] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)

    @property
    def attempts(self) -> int:
        """Attempts that have ended."""
        return len(self.candidates) + len(self.duplicates) + len(self.rejected)

    @property
    def ended(self) -> str | None:
        """Why the search is over: ``accepted``, ``attempts``, or None."""
        if len(self.candidates) >= self.limits.accepted:
            return "accepted"
        return "attempts" if self.attempts >= self.limits.attempts else None

    @property
    def evaluated(self) -> frozenset[str]:
        """The keys of all candidates."""
        return frozenset(candidate.key for candidate in self.candidates)

    def score_spec(self, edges: Edges, kinetics_seed: str) -> Json | None:
        """The score to compute for a valid proposal, or None for a duplicate."""
        key = key_of(edges)
        if key in self.evaluated:
            return None
        return score_task_spec(key, kinetics_seed, self.limits.inner_budget, self.limits.holdout)

    def score_charge(self) -> Charge:
        """What a new candidate spends."""
        return {
            "inner_evaluations": self.limits.inner_budget,
            "holdout_evaluations": self.limits.holdout,
            "accepted": 1,
            "attempts": 1,
        }

    def unscored_charge(self) -> Charge:
        """What a duplicate or a rejected proposal spends."""
        return {"attempts": 1}

    def accept(self, score: Json) -> None:
        """Archive a score.  Raises ValueError for a class that the archive has."""
        self._require_open()
        if score["key"] in self.evaluated:
            raise ValueError(f"the archive has {score['key']} already; record a duplicate")
        self.candidates.append(
            Candidate(
                attempt=self.attempts,
                key=score["key"],
                train_oscillating=score["train_oscillating"],
                holdout_oscillating=score["holdout_oscillating"],
                best=score["best"],
            )
        )

    def repeat(self, edges: Edges) -> None:
        """Record a duplicate.  Raises ValueError for a class that the archive lacks."""
        self._require_open()
        key = key_of(edges)
        if key not in self.evaluated:
            raise ValueError(f"the archive lacks {key}; have it scored")
        self.duplicates.append(key)

    def reject(self, key: str = "") -> None:
        """Record a proposal that is no valid topology."""
        self._require_open()
        self.rejected.append(key)

    def ranked(self) -> list[Candidate]:
        """Candidates by falling holdout score, the earlier first of equals."""
        return sorted(self.candidates, key=lambda one: (-one.holdout_oscillating, one.attempt))

    def selected(self, accepted: int) -> str | None:
        """The best key by holdout score among the first candidates, the earlier of equals."""
        first = self.candidates[:accepted]
        best = max(first, key=lambda one: (one.holdout_oscillating, -one.attempt), default=None)
        return best.key if best else None

    def selected_after_each(self) -> list[str | None]:
        """What would be selected after each attempt; None before the first candidate."""
        accepted_at = {candidate.attempt for candidate in self.candidates}
        counts = accumulate(attempt in accepted_at for attempt in range(self.attempts))
        return [self.selected(count) for count in counts]

    def spent(self) -> dict[str, int]:
        """All that the search has been charged, by resource."""
        count = len(self.candidates)
        return {
            "accepted": count,
            "attempts": self.attempts,
            "inner_evaluations": count * self.limits.inner_budget,
            "holdout_evaluations": count * self.limits.holdout,
        }

    def document(self) -> Json:
        """The whole state as plain JSON."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Json) -> Search:
        """Read what ``document`` gave.  Raises TypeError for other keys."""
        fields = dict(document)
        limits = SearchLimits(**fields.pop("limits"))
        candidates = [Candidate(**entry) for entry in fields.pop("candidates")]
        return cls(limits, candidates, **fields)

    def _require_open(self) -> None:
        if self.ended:
            raise ValueError(f"the search is over ({self.ended}); nothing can be recorded")


class Proposer(Protocol):
    """Whatever names the next topology from the state of a search."""

    def propose(self, search: Search) -> Edges:
        """A valid topology; pure."""
        ...


def archive_rows(search: Search, *, hints: bool) -> list[Json]:
    """The archive as every arm may see it, in the order of the attempts.

    hints: with structural classes, which separate zero from other scores.
    """
    return [
        {
            "key": one.key,
            "holdout_score": one.holdout_oscillating / search.limits.holdout,
            "dimension": dimension(edges_of(one.key)),
            **({"motif_class": structure(edges_of(one.key)).value} if hints else {}),
        }
        for one in search.candidates
    ]


def completed_search(
    proposer: Proposer, limits: SearchLimits, kinetics_seed: str, score: Callable[[Json], Json]
) -> Search:
    """Run a proposer to its end; ``score`` maps a task's spec to its value."""
    search = Search(limits)
    while search.ended is None:
        edges = proposer.propose(search)
        spec = search.score_spec(edges, kinetics_seed)
        if spec is None:
            search.repeat(edges)
        else:
            search.accept(score(spec))
    return search
