"""Arms without an agent: random, evolutionary and elite8.

An arm is a pure function of its seed and of the search so far: the draws of an
attempt come from a stream of their own, so that nothing has to be saved beside
the search, and a resumed arm goes on as it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np

from probebench.environments.oscillator.search import Candidate, Proposer, Search
from probebench.wire.oscillator import Edges, all_keys, edges_of, is_valid

Item = TypeVar("Item")

INITIAL_SEEDS = 16
TOURNAMENT = 4
ELITES = 8
IMMIGRANT_PERCENT = 25
ONE_EDGE_PERCENT = 70


class ArmStream(IntEnum):
    """Names an arm's streams, so that arms with one seed draw apart."""

    RANDOM = 0
    EVOLUTIONARY = 1
    ELITE8 = 2


class Draws:
    """Exact draws of one attempt, from a counter-based generator's raw words.

    The words, unlike a generator's methods, are the same in every NumPy.
    """

    def __init__(self, seed_hex: str, stream: ArmStream, attempt: int) -> None:
        counter = np.array([0, 0, stream, attempt], dtype=np.uint64)
        self._philox = np.random.Philox(key=int(seed_hex, 16), counter=counter)

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1, each as likely."""
        fair = 2**64 - 2**64 % limit
        while (word := int(self._philox.random_raw())) >= fair:
            pass
        return word % limit

    def percent(self, chance: int) -> bool:
        """True in ``chance`` of a hundred."""
        return self.below(100) < chance

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items, each as likely."""
        return items[self.below(len(items))]


@dataclass(frozen=True)
class RandomArm:
    """Uniform over the classes that the archive lacks.  seed: 32 hexadecimal digits."""

    seed: str

    def propose(self, search: Search) -> Edges:
        """A class that is not evaluated."""
        return _immigrant(Draws(self.seed, ArmStream.RANDOM, search.attempts), search)


@dataclass(frozen=True)
class EvolutionaryArm:
    """Sixteen random classes; then mutants of tournament winners of the archive."""

    seed: str

    def propose(self, search: Search) -> Edges:
        """A random class, or a mutant, which may be a duplicate."""
        draws = Draws(self.seed, ArmStream.EVOLUTIONARY, search.attempts)
        if len(search.candidates) < INITIAL_SEEDS:
            return _immigrant(draws, search)
        drawn = [draws.choice(search.candidates) for _ in range(TOURNAMENT)]
        return _mutant(draws, min(drawn, key=_rank))


@dataclass(frozen=True)
class Elite8Arm:
    """Mutants of the best eight in turn, and a quarter random classes."""

    seed: str

    def propose(self, search: Search) -> Edges:
        """A random class, or a mutant, which may be a duplicate."""
        draws = Draws(self.seed, ArmStream.ELITE8, search.attempts)
        if len(search.candidates) < ELITES or draws.percent(IMMIGRANT_PERCENT):
            return _immigrant(draws, search)
        return _mutant(draws, search.ranked()[search.attempts % ELITES])


ARMS: dict[str, Callable[[str], Proposer]] = {
    "random": RandomArm,
    "evolutionary": EvolutionaryArm,
    "elite8": Elite8Arm,
}


def _rank(candidate: Candidate) -> tuple[int, int]:
    return -candidate.holdout_oscillating, candidate.attempt


def _immigrant(draws: Draws, search: Search) -> Edges:
    evaluated = search.evaluated
    return edges_of(draws.choice([key for key in all_keys() if key not in evaluated]))


def _mutant(draws: Draws, parent: Candidate) -> Edges:
    """The parent with one edge changed, or two; drawn again until it is valid."""
    changes = 1 if draws.percent(ONE_EDGE_PERCENT) else 2
    while True:
        edges = list(edges_of(parent.key))
        slots = list(range(len(edges)))
        for _ in range(changes):
            slot = slots.pop(draws.below(len(slots)))
            edges[slot] = (edges[slot] + 1 + draws.below(2)) % 3
        if is_valid(tuple(edges)):
            return tuple(edges)
