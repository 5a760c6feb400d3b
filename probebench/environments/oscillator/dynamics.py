"""The circuit's equations and their integration: the reference in plain NumPy.

With m_i, p_i the mRNA and protein of gene i::

    dm_i/dt = dm_i (l_i + (1 - l_i) A_i - m_i)
    dp_i/dt = dp_i (m_i - p_i)

A_i is the product over the activators j of gene i of w/(1+w), times the
product over its repressors of 1/(1+w), w = (p_j/K)^n; without a regulator it
is 1.  Classical Runge-Kutta of fourth order from 0.5 everywhere.

The order of every operation here is that of ``compiled``: only + - * / are
used, which IEEE 754 rounds alike everywhere, so the two agree to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probebench.environments.oscillator.kinetics import (
    EXPONENT,
    LEAK,
    MRNA_DECAY,
    PROTEIN_DECAY,
    THRESHOLD,
    Reals,
)
from probebench.environments.oscillator.method import METHOD, Method
from probebench.wire.oscillator import ACTIVATION, GENES, NONE, Edges


@dataclass(frozen=True)
class TimeCourses:
    """Proteins of many circuits over the window that is judged.

    proteins: (vectors, 3, samples) float64, after each step of the window: with
        the standard method 1200 at the times 300.25, 300.5 .. 600.
    rested: (vectors,) bool: the circuit came to rest and was left there; its
        ``proteins`` are zero.
    """

    proteins: Reals
    rested: np.ndarray[tuple[int], np.dtype[np.bool_]]


def time_courses(edges: Edges, vectors: Reals, method: Method = METHOD) -> TimeCourses:
    """Integrate a topology, as labelled, under (count, 27) kinetic vectors."""
    kinetics: Reals = np.ascontiguousarray(vectors.T)
    state: Reals = np.full((2 * GENES, len(vectors)), method.initial_level)
    proteins = np.zeros((len(vectors), GENES, method.window_steps))
    active = np.arange(len(vectors))
    rested = np.zeros(len(vectors), dtype=np.bool_)
    for block in range(method.transient_blocks + method.window_blocks):
        state, levels = _block(edges, state, kinetics, method)
        if block >= method.transient_blocks:
            first = (block - method.transient_blocks) * method.block_steps
            proteins[active, :, first : first + method.block_steps] = levels.transpose(2, 1, 0)
        if method.early_exit:
            high, low = levels.max(axis=0), levels.min(axis=0)
            moving = np.any(high - low > method.rest_range * high, axis=0)
            rested[active[~moving]] = True
            active, state, kinetics = active[moving], state[:, moving], kinetics[:, moving]
    proteins[rested] = 0.0
    return TimeCourses(proteins, rested)


def slopes(edges: Edges, state: Reals, kinetics: Reals) -> Reals:
    """Time derivatives, (6, count): mRNA of the three genes, then proteins.

    state: (6, count) in the same order; kinetics: (27, count).
    """
    found = np.empty_like(state)
    for gene in range(GENES):
        mrna, protein = state[gene], state[GENES + gene]
        leak = kinetics[LEAK + gene]
        drive = leak + (1.0 - leak) * _activity(edges, gene, state, kinetics)
        found[gene] = kinetics[MRNA_DECAY + gene] * (drive - mrna)
        found[GENES + gene] = kinetics[PROTEIN_DECAY + gene] * (mrna - protein)
    return found


def _activity(edges: Edges, gene: int, state: Reals, kinetics: Reals) -> Reals:
    """A_i as one quotient: the numerators' product over that of the 1 + w."""
    numerator, denominator = np.ones(state.shape[1]), np.ones(state.shape[1])
    for source in range(GENES):
        slot = GENES * gene + source
        if edges[slot] == NONE:
            continue
        level = state[GENES + source] * (1.0 / kinetics[THRESHOLD + slot])
        power = _integer_power(level, kinetics[EXPONENT + slot])
        if edges[slot] == ACTIVATION:
            numerator = numerator * power
        denominator = denominator * (1.0 + power)
    return numerator / denominator


def _integer_power(base: Reals, exponent: Reals) -> Reals:
    """Base to the power 1, 2, 3 or 4, by products alone."""
    square = base * base
    odd = (exponent == 1.0) | (exponent == 3.0)
    return np.where(odd, base, square) * np.where(exponent > 2.0, square, 1.0)


def _block(edges: Edges, state: Reals, kinetics: Reals, method: Method) -> tuple[Reals, Reals]:
    """Advance one block; the state after it, and proteins (steps, 3, count) after each step."""
    levels = np.empty((method.block_steps, GENES, state.shape[1]))
    half, sixth = 0.5 * method.step, method.step / 6.0
    for step in range(method.block_steps):
        k1 = slopes(edges, state, kinetics)
        k2 = slopes(edges, state + half * k1, kinetics)
        k3 = slopes(edges, state + half * k2, kinetics)
        k4 = slopes(edges, state + method.step * k3, kinetics)
        state = state + sixth * (((k1 + 2.0 * k2) + 2.0 * k3) + k4)
        levels[step] = state[GENES:]
    return state, levels
