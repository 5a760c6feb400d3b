"""Kinetic vectors: the frozen random parameters that every topology is tried with.

A vector has 27 columns, one for every gene and every possible edge, so that
all topologies meet the same vectors: a topology reads the columns of its edges.

===========  ======================  =======================
columns      meaning                 distribution
===========  ======================  =======================
0..2         dm_i, mRNA decay        log-uniform 10^-0.5..10^0.5
3..5         dp_i, protein decay     log-uniform 10^-0.5..10^0.5
6..8         l_i, leak               log-uniform 1e-3..1e-1
9 + s        K of slot s = 3 i + j   log-uniform 1e-2..1
18 + s       n of slot s             1, 2, 3 or 4, equally likely
===========  ======================  =======================

Time is in units of a typical decay, concentrations in units of the fully
induced level.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from probebench.environments.oscillator.sobol import BITS, Bits, sobol_points

Reals: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

COLUMNS = 27
MRNA_DECAY, PROTEIN_DECAY, LEAK, THRESHOLD, EXPONENT = 0, 3, 6, 9, 18
MAX_EXPONENT = 4
_LOG10_RANGES = ((0, 6, -0.5, 0.5), (6, 9, -3.0, -1.0), (9, 18, -2.0, 0.0))

MAX_VECTORS = 2**20


class VectorSet(IntEnum):
    """Which of the three frozen sets; each is scrambled by random bits of its own."""

    TRAIN = 0  # the inner budget, charged
    HOLDOUT = 1  # what archives show and what every arm selects on
    TRUTH = 2  # what comparisons report; no arm sees it


@lru_cache(maxsize=8)
def kinetic_vectors(seed_hex: str, vector_set: VectorSet, count: int) -> Reals:
    """The first ``count`` vectors of a set, (count, 27) float64, read-only.

    seed_hex: 128-bit seed, 32 hexadecimal digits.
    The points are Sobol's, scrambled linearly and shifted (J. Matousek, J.
    Complexity 14, 527, 1998) by bits from a counter-based generator.
    Raises ValueError for a count below 1 or above 2^20.
    """
    if not 1 <= count <= MAX_VECTORS:
        raise ValueError(f"the number of vectors is {count}; use 1 to {MAX_VECTORS}")
    cube = _scrambled(sobol_points(count), seed_hex, vector_set)
    # Half a unit up: no point lies on the lower face, and none on the upper.
    unit = (cube + 0.5) / 2.0**BITS
    vectors = np.empty((count, COLUMNS))
    for first, stop, low, high in _LOG10_RANGES:
        # The last bit of a power depends on the processor; rounded to single
        # precision it hardly ever does, and the vectors are frozen.
        power = 10.0 ** (low + (high - low) * unit[:, first:stop])
        vectors[:, first:stop] = power.astype(np.float32)
    vectors[:, EXPONENT:] = 1.0 + np.floor(MAX_EXPONENT * unit[:, EXPONENT:])
    vectors.flags.writeable = False
    return vectors


def vectors_sha256(vectors: Reals) -> str:
    """SHA-256, in hex, over the little-endian bytes of the vectors, row by row."""
    return hashlib.sha256(np.ascontiguousarray(vectors, dtype="<f8").tobytes()).hexdigest()


def _scrambled(points: Bits, seed_hex: str, vector_set: VectorSet) -> Bits:
    """Multiply each column by a random lower triangle over GF(2), then shift it."""
    counter = np.array([0, 0, 0, vector_set], dtype=np.uint64)
    raw = np.random.Philox(key=int(seed_hex, 16), counter=counter).random_raw(COLUMNS * (BITS + 1))
    words = (raw >> np.uint64(32)).astype(np.uint32).reshape(COLUMNS, BITS + 1)
    scrambled = np.empty_like(points)
    for column in range(COLUMNS):
        scrambled[:, column] = words[column, BITS]
        for bit in range(BITS):
            weight = np.uint32(1 << (BITS - 1 - bit))
            # Of the random word, what stands above the diagonal is dropped.
            row = (words[column, bit] | weight) & ~np.uint32(int(weight) - 1)
            parity = np.bitwise_count(points[:, column] & row) & 1
            scrambled[:, column] ^= parity.astype(np.uint32) * weight
    return scrambled
