"""Gene-circuit topologies: the grammar of a proposal, and relabelling.

A topology is nine values in {0, 1, 2} (none, activation, repression), row by
row, the row being the target: ``edges[3*i + j]`` is the effect of gene j on
gene i.  Genes have no names, so the six relabellings of a topology are one
circuit; the least of them in dictionary order is its canonical form, and that
form written as nine digits is its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations, product
from typing import TypeAlias

from probebench.kernel.errors import ActionRejectedError

PROTOCOL = "oscillator-topology-proposal-v4"

GENES = 3
SLOTS = GENES * GENES
NONE, ACTIVATION, REPRESSION = 0, 1, 2
MIN_EDGES, MAX_EDGES = 2, 6

Edges: TypeAlias = tuple[int, ...]

# PERMUTATIONS[p][s]: the slot from which relabelling p takes the value of slot s.
PERMUTATIONS: tuple[tuple[int, ...], ...] = tuple(
    tuple(GENES * order[i] + order[j] for i in range(GENES) for j in range(GENES))
    for order in permutations(range(GENES))
)


def check_edges(edges: Sequence[object]) -> Edges:
    """Read nine values as a valid topology; any relabelling is.

    Raises ActionRejectedError with one of the codes ``wrong_length``,
    ``wrong_type``, ``unknown_effect``, ``too_few_edges``, ``too_many_edges``
    and ``isolated_gene``, in this order.
    """
    if len(edges) != SLOTS:
        raise ActionRejectedError(
            "wrong_length", f"edges has {len(edges)} values; a topology has exactly {SLOTS}"
        )
    values = tuple(_effect(slot, value) for slot, value in enumerate(edges))
    active = SLOTS - values.count(NONE)
    if active < MIN_EDGES:
        raise ActionRejectedError(
            "too_few_edges", f"edges has {active} active values; use at least {MIN_EDGES}"
        )
    if active > MAX_EDGES:
        raise ActionRejectedError(
            "too_many_edges", f"edges has {active} active values; use at most {MAX_EDGES}"
        )
    for gene in range(GENES):
        if not _touched(values, gene):
            raise ActionRejectedError(
                "isolated_gene", f"no edge touches gene {gene}; every gene needs one, of any kind"
            )
    return values


def is_valid(edges: Edges) -> bool:
    """Whether nine values in {0, 1, 2} have 2 to 6 edges and no isolated gene."""
    active = SLOTS - edges.count(NONE)
    return MIN_EDGES <= active <= MAX_EDGES and all(_touched(edges, i) for i in range(GENES))


def relabellings(edges: Edges) -> Iterator[Edges]:
    """The topology under each of the six orders of the genes, repeats included."""
    for slots in PERMUTATIONS:
        yield tuple(edges[slot] for slot in slots)


def canonical(edges: Edges) -> Edges:
    """The least of the six relabellings in dictionary order."""
    return min(relabellings(edges))


def key_of(edges: Edges) -> str:
    """The canonical form of any relabelling, as nine digits."""
    return "".join(map(str, canonical(edges)))


def edges_of(key: str) -> Edges:
    """The canonical form that ``key`` names.  Raises ValueError for anything else."""
    if len(key) != SLOTS or not set(key) <= set("012"):
        raise ValueError(f"the topology key {key!r} is not {SLOTS} digits from 0, 1 and 2")
    edges = tuple(map(int, key))
    if not is_valid(edges):
        raise ValueError(f"the topology key {key!r} has too few or many edges or an isolated gene")
    if canonical(edges) != edges:
        raise ValueError(f"the topology key {key!r} is not canonical; {key_of(edges)} is")
    return edges


def dimension(edges: Edges) -> int:
    """Kinetic parameters of a topology: nine of the genes and two for each edge."""
    return 3 * GENES + 2 * (SLOTS - edges.count(NONE))


@cache
def all_topologies() -> tuple[Edges, ...]:
    """Every valid topology, in dictionary order."""
    return tuple(
        edges for edges in product((NONE, ACTIVATION, REPRESSION), repeat=SLOTS) if is_valid(edges)
    )


@cache
def all_keys() -> tuple[str, ...]:
    """The key of every class under relabelling, in dictionary order."""
    return tuple(sorted({key_of(edges) for edges in all_topologies()}))


def _effect(slot: int, value: object) -> int:
    # A boolean is an int to Python and none in JSON.
    if isinstance(value, bool) or not isinstance(value, int):
        raise ActionRejectedError(
            "wrong_type", f"edges[{slot}] is {value!r:.40}; it must be the integer 0, 1 or 2"
        )
    if value not in {NONE, ACTIVATION, REPRESSION}:
        raise ActionRejectedError(
            "unknown_effect", f"edges[{slot}] is {value!r:.40}; use 0, 1 or 2"
        )
    return value


def _touched(edges: Edges, gene: int) -> bool:
    return any(edges[GENES * gene + k] or edges[GENES * k + gene] for k in range(GENES))
