"""Structural classes: which feedback a topology has, by its cycles.

A cycle visits each of its genes once; its sign is the product of its edges'
signs.  Without a negative cycle a circuit of this kind does not oscillate
(R. Thomas 1981, Springer Series in Synergetics 9, 180; J.-L. Gouze 1998, J.
Biol. Syst. 6, 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise, permutations

from probebench.wire.oscillator import GENES, NONE, REPRESSION, Edges


class Structure(StrEnum):
    """The class of a topology: its longest negative cycle decides.

    ``..._WITH_POSITIVE`` has a positive cycle too: anywhere, but beside a
    negative self-loop one in the strongly connected component of that gene.
    """

    ACYCLIC = "acyclic"
    POSITIVE_ONLY = "positive_only"
    NEGATIVE_SELF = "negative_self_loop"
    NEGATIVE_SELF_WITH_POSITIVE = "negative_self_loop_with_positive"
    NEGATIVE_2 = "negative_2_cycle"
    NEGATIVE_2_WITH_POSITIVE = "negative_2_cycle_with_positive"
    NEGATIVE_3 = "negative_3_cycle"
    NEGATIVE_3_WITH_POSITIVE = "negative_3_cycle_with_positive"


# No kinetics make these oscillate: their scores are zero without simulation.
SILENT = frozenset({Structure.ACYCLIC, Structure.POSITIVE_ONLY, Structure.NEGATIVE_SELF})


@dataclass(frozen=True)
class Cycle:
    """A simple directed cycle.  genes: in the order of the effects, the least first."""

    genes: tuple[int, ...]
    negative: bool


def cycles(edges: Edges) -> tuple[Cycle, ...]:
    """Every simple directed cycle, the shortest first."""
    found = []
    for genes in _loops():
        effects = [
            edges[GENES * target + source] for source, target in pairwise((*genes, genes[0]))
        ]
        if NONE not in effects:
            found.append(Cycle(genes, effects.count(REPRESSION) % 2 == 1))
    return tuple(found)


def structure(edges: Edges) -> Structure:
    """The structural class; the same for every relabelling."""
    found = cycles(edges)
    negative = [cycle for cycle in found if cycle.negative]
    positive = [cycle for cycle in found if not cycle.negative]
    if not negative:
        return Structure.POSITIVE_ONLY if positive else Structure.ACYCLIC
    length = max(len(cycle.genes) for cycle in negative)
    if length == 1:
        shared = any(_connected(edges, n.genes[0], p.genes[0]) for n in negative for p in positive)
        return Structure.NEGATIVE_SELF_WITH_POSITIVE if shared else Structure.NEGATIVE_SELF
    alone, joined = {
        2: (Structure.NEGATIVE_2, Structure.NEGATIVE_2_WITH_POSITIVE),
        3: (Structure.NEGATIVE_3, Structure.NEGATIVE_3_WITH_POSITIVE),
    }[length]
    return joined if positive else alone


def is_silent(edges: Edges) -> bool:
    """Whether the structure alone excludes oscillation."""
    return structure(edges) in SILENT


@cache
def _loops() -> tuple[tuple[int, ...], ...]:
    return tuple(
        genes
        for length in range(1, GENES + 1)
        for genes in permutations(range(GENES), length)
        if genes[0] == min(genes)
    )


def _connected(edges: Edges, a: int, b: int) -> bool:
    """Whether two genes lie in one strongly connected component."""
    return _reaches(edges, a, b) and _reaches(edges, b, a)


def _reaches(edges: Edges, source: int, target: int) -> bool:
    reached = {source}
    for _ in range(GENES):
        reached |= {i for i in range(GENES) for j in reached if edges[GENES * i + j]}
    return target in reached
