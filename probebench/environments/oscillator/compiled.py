"""The fast path: integration and verdict compiled, equal to the reference to the last bit.

Importing this module imports numba, so only functions do it.  Circuits advance
together in lanes, which the compiler turns into vector instructions; a lane
that has its verdict takes the next kinetic vector.  No lane reads another, so
neither the order nor the company of a vector changes its verdict.

Three things keep the loop over the lanes vectorised, and each is worth a
factor of three or more: all that it reads and writes lies in one array at
constant distances; what it calls is inlined before the loop is looked at; and
``error_model="numpy"`` drops the check of every divisor.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit

from probebench.environments.oscillator.kinetics import (
    EXPONENT,
    LEAK,
    MRNA_DECAY,
    THRESHOLD,
    Reals,
)
from probebench.environments.oscillator.method import METHOD, Method
from probebench.environments.oscillator.verdict import Verdicts
from probebench.wire.oscillator import ACTIVATION, GENES, NONE, SLOTS, Edges

LANES = 8

# The lanes' array, row after row of LANES numbers: the state, and what the
# slopes need of the kinetics and of the topology.
_MRNA, _PROTEIN = 0, GENES * LANES
_DECAY = 2 * GENES * LANES  # of mRNA, then of protein
_LEAK_ROW, _INDUCED = 4 * GENES * LANES, 5 * GENES * LANES  # l and 1 - l
_SENSITIVITY = 6 * GENES * LANES  # 1/K by slot; 0 without an edge, so that w = 0
_POWER = _SENSITIVITY + SLOTS * LANES
_ACTIVATES = _POWER + SLOTS * LANES
_SIZE = _ACTIVATES + SLOTS * LANES

compiled = njit(error_model="numpy", cache=True, nogil=True)
inlined = njit(error_model="numpy", cache=True, nogil=True, forceinline=True)

Six: TypeAlias = tuple[float, float, float, float, float, float]


def judged(edges: Edges, vectors: Reals, method: Method = METHOD) -> Verdicts:
    """Verdicts on a topology, as labelled, under (count, 27) kinetic vectors.

    Releases the interpreter's lock, so that threads can share the work.
    """
    found = Verdicts(
        np.zeros(len(vectors), dtype=np.bool_), np.zeros(len(vectors)), np.zeros(len(vectors))
    )
    _judge_all(
        np.array(edges, dtype=np.int64),
        # A copy, because a read-only array would be compiled for once more.
        np.array(vectors, dtype=np.float64, order="C"),
        method,
        (found.oscillates, found.contrast, found.period),
    )
    return found


@compiled
def _judge_all(edges: Any, vectors: Any, method: Method, found: Any) -> None:
    lanes, levels = np.zeros(_SIZE), np.empty((method.block_steps, GENES * LANES))
    window = np.empty((LANES, GENES, method.window_blocks * method.block_steps))
    vector_of, age = np.full(LANES, -1), np.zeros(LANES, np.int64)
    waiting, busy = 0, 0
    for lane in range(min(LANES, len(vectors))):
        _load(edges, vectors[waiting], lanes, lane, method.initial_level)
        vector_of[lane] = waiting
        waiting, busy = waiting + 1, busy + 1
    while busy > 0:
        _advance(lanes, levels, method)
        for lane in range(LANES):
            if vector_of[lane] < 0:
                continue
            if age[lane] >= method.transient_blocks:
                _keep(levels, window[lane], lane, age[lane] - method.transient_blocks)
            age[lane] += 1
            rests = method.early_exit and _rests(levels, lane, method.rest_range)
            if not rests and age[lane] < method.transient_blocks + method.window_blocks:
                continue
            if not rests:
                _judge(window[lane], vector_of[lane], method, found)
            vector_of[lane], age[lane] = -1, 0
            busy -= 1
            if waiting < len(vectors):
                _load(edges, vectors[waiting], lanes, lane, method.initial_level)
                vector_of[lane] = waiting
                waiting, busy = waiting + 1, busy + 1


@compiled
def _load(edges: Any, vector: Any, lanes: Any, lane: int, initial_level: float) -> None:
    for row in range(2 * GENES):
        lanes[_MRNA + row * LANES + lane] = initial_level
        lanes[_DECAY + row * LANES + lane] = vector[MRNA_DECAY + row]
    for gene in range(GENES):
        lanes[_LEAK_ROW + gene * LANES + lane] = vector[LEAK + gene]
        lanes[_INDUCED + gene * LANES + lane] = 1.0 - vector[LEAK + gene]
    for slot in range(SLOTS):
        sensitivity = 0.0 if edges[slot] == NONE else 1.0 / vector[THRESHOLD + slot]
        lanes[_SENSITIVITY + slot * LANES + lane] = sensitivity
        lanes[_POWER + slot * LANES + lane] = vector[EXPONENT + slot]
        lanes[_ACTIVATES + slot * LANES + lane] = 1.0 if edges[slot] == ACTIVATION else 0.0


@compiled
def _advance(lanes: Any, levels: Any, method: Method) -> None:
    """One block of steps of all lanes; proteins after each step go to ``levels``."""
    half, sixth = 0.5 * method.step, method.step / 6.0
    for step in range(levels.shape[0]):
        for lane in range(LANES):
            at = _state(lanes, lane)
            a = _slopes(lanes, lane, at)
            b = _slopes(lanes, lane, _moved(at, half, a))
            c = _slopes(lanes, lane, _moved(at, half, b))
            d = _slopes(lanes, lane, _moved(at, method.step, c))
            _store(lanes, lane, _moved(at, sixth, _weighted(a, b, c, d)))
        # In a loop of its own: the one above may touch no second array.
        for row in range(GENES * LANES):
            levels[step, row] = lanes[_PROTEIN + row]


@inlined
def _state(lanes: Any, lane: int) -> Six:
    return (
        lanes[_MRNA + lane],
        lanes[_MRNA + LANES + lane],
        lanes[_MRNA + 2 * LANES + lane],
        lanes[_PROTEIN + lane],
        lanes[_PROTEIN + LANES + lane],
        lanes[_PROTEIN + 2 * LANES + lane],
    )


@inlined
def _store(lanes: Any, lane: int, at: Six) -> None:
    lanes[_MRNA + lane] = at[0]
    lanes[_MRNA + LANES + lane] = at[1]
    lanes[_MRNA + 2 * LANES + lane] = at[2]
    lanes[_PROTEIN + lane] = at[3]
    lanes[_PROTEIN + LANES + lane] = at[4]
    lanes[_PROTEIN + 2 * LANES + lane] = at[5]


@inlined
def _moved(at: Six, time: float, k: Six) -> Six:
    return (
        at[0] + time * k[0],
        at[1] + time * k[1],
        at[2] + time * k[2],
        at[3] + time * k[3],
        at[4] + time * k[4],
        at[5] + time * k[5],
    )


@inlined
def _weighted(a: Six, b: Six, c: Six, d: Six) -> Six:
    return (
        ((a[0] + 2.0 * b[0]) + 2.0 * c[0]) + d[0],
        ((a[1] + 2.0 * b[1]) + 2.0 * c[1]) + d[1],
        ((a[2] + 2.0 * b[2]) + 2.0 * c[2]) + d[2],
        ((a[3] + 2.0 * b[3]) + 2.0 * c[3]) + d[3],
        ((a[4] + 2.0 * b[4]) + 2.0 * c[4]) + d[4],
        ((a[5] + 2.0 * b[5]) + 2.0 * c[5]) + d[5],
    )


@inlined
def _slopes(lanes: Any, lane: int, at: Six) -> Six:
    return (
        _mrna_slope(lanes, lane, 0, at),
        _mrna_slope(lanes, lane, 1, at),
        _mrna_slope(lanes, lane, 2, at),
        lanes[_DECAY + 3 * LANES + lane] * (at[0] - at[3]),
        lanes[_DECAY + 4 * LANES + lane] * (at[1] - at[4]),
        lanes[_DECAY + 5 * LANES + lane] * (at[2] - at[5]),
    )


@inlined
def _mrna_slope(lanes: Any, lane: int, gene: int, at: Six) -> Any:
    row, slot = gene * LANES + lane, GENES * gene * LANES + lane
    w0 = _regulation(lanes, slot, at[3])
    w1 = _regulation(lanes, slot + LANES, at[4])
    w2 = _regulation(lanes, slot + 2 * LANES, at[5])
    numerator = _factor(lanes, slot, w0) * _factor(lanes, slot + LANES, w1)
    numerator *= _factor(lanes, slot + 2 * LANES, w2)
    activity = numerator / (((1.0 + w0) * (1.0 + w1)) * (1.0 + w2))
    drive = lanes[_LEAK_ROW + row] + lanes[_INDUCED + row] * activity
    return lanes[_DECAY + row] * (drive - at[gene])


@inlined
def _regulation(lanes: Any, slot: int, protein: float) -> Any:
    """(p/K)^n, by products alone."""
    level = protein * lanes[_SENSITIVITY + slot]
    square = level * level
    n = lanes[_POWER + slot]
    return (level if n in (1.0, 3.0) else square) * (square if n > 2.0 else 1.0)


@inlined
def _factor(lanes: Any, slot: int, w: float) -> Any:
    return w if lanes[_ACTIVATES + slot] > 0.0 else 1.0


@compiled
def _rests(levels: Any, lane: int, rest_range: float) -> bool:
    for gene in range(GENES):
        low = high = levels[0, gene * LANES + lane]
        for step in range(1, levels.shape[0]):
            low = min(low, levels[step, gene * LANES + lane])
            high = max(high, levels[step, gene * LANES + lane])
        if not high - low <= rest_range * high:
            return False
    return True


@compiled
def _keep(levels: Any, courses: Any, lane: int, block: int) -> None:
    steps = levels.shape[0]
    for gene in range(GENES):
        for step in range(steps):
            courses[gene, block * steps + step] = levels[step, gene * LANES + lane]


@compiled
def _judge(courses: Any, vector: int, method: Method, found: Any) -> None:
    oscillates, contrast, period = found
    for gene in range(GENES):
        seen_contrast, seen_period = _judge_levels(courses[gene], method)
        if seen_contrast > contrast[vector]:
            oscillates[vector] = True
            contrast[vector], period[vector] = seen_contrast, seen_period


@compiled
def _judge_levels(levels: Any, method: Method) -> tuple[float, float]:
    high, low = levels.max(), levels.min()
    if not (high - low >= method.min_swing and high - low >= method.min_contrast * (high + low)):
        return 0.0, 0.0
    end = levels[len(levels) - method.block_steps :]
    if end.max() - end.min() <= method.rest_range * end.max():
        return 0.0, 0.0
    middle = 0.5 * (high + low)
    crossings, samples, count = np.empty(len(levels)), np.empty(len(levels), np.int64), 0
    for k in range(len(levels) - 1):
        if levels[k] < middle and levels[k + 1] >= middle:
            crossings[count] = k + (middle - levels[k]) / (levels[k + 1] - levels[k])
            samples[count] = k
            count += 1
    if count <= method.min_cycles:
        return 0.0, 0.0
    first = levels[samples[0] + 1 : samples[1] + 1]
    last = levels[samples[count - 2] + 1 : samples[count - 1] + 1]
    if not last.max() - last.min() >= method.min_amplitude_ratio * (first.max() - first.min()):
        return 0.0, 0.0
    mean, variance = _moments(crossings[:count])
    if not variance <= (method.max_period_cv * method.max_period_cv) * (mean * mean):
        return 0.0, 0.0
    return (high - low) / (high + low), method.step * mean


@compiled
def _moments(crossings: Any) -> tuple[float, float]:
    """Mean and variance of the intervals between crossings, summed in order."""
    intervals = len(crossings) - 1
    total = 0.0
    for k in range(intervals):
        total += crossings[k + 1] - crossings[k]
    mean = total / intervals
    squares = 0.0
    for k in range(intervals):
        deviation = (crossings[k + 1] - crossings[k]) - mean
        squares += deviation * deviation
    return mean, squares / intervals
