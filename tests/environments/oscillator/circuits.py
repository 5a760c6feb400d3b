"""Circuits and kinetic vectors that several tests use."""

from __future__ import annotations

import numpy as np

from probebench.environments.oscillator.kinetics import Reals, VectorSet, kinetic_vectors
from probebench.environments.oscillator.reference import TRUTH_SEED
from probebench.wire.oscillator import Edges, edges_of

SEED = "0123456789abcdef" * 2
TRUTH = kinetic_vectors(TRUTH_SEED, VectorSet.TRUTH, 4096)

REPRESSILATOR = edges_of("002200020")
GOODWIN = edges_of("001100020")
# Two cycles that share a gene with three regulators, one of them its own.
CROWDED = edges_of("002200221")
TOGGLE, POSITIVE_RING = edges_of("001002020"), edges_of("001100010")
CASCADE, INCOHERENT_FEED_FORWARD = edges_of("000001100"), edges_of("000100120")


def vector(
    *,
    mrna_decay: float = 1.0,
    protein_decay: float = 1.0,
    leak: float = 0.001,
    threshold: float = 0.1,
    exponent: float = 4.0,
) -> Reals:
    """One kinetic vector, (1, 27), with all genes and slots alike."""
    columns = [[mrna_decay] * 3, [protein_decay] * 3, [leak] * 3, [threshold] * 9, [exponent] * 9]
    return np.concatenate(columns)[np.newaxis]


def relabelled(edges: Edges, vectors: Reals, order: tuple[int, ...]) -> tuple[Edges, Reals]:
    """The same circuits with gene i called order[i], columns included."""
    moved = [0] * 9
    columns = np.empty(27, dtype=np.int64)
    for i in range(3):
        for block in (0, 3, 6):
            columns[block + order[i]] = block + i
        for j in range(3):
            slot, old = 3 * order[i] + order[j], 3 * i + j
            moved[slot] = edges[old]
            columns[9 + slot], columns[18 + slot] = 9 + old, 18 + old
    return tuple(moved), vectors[:, columns]
