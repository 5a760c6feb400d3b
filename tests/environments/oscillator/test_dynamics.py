"""The equations and their integration, as statements about circuits."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from probebench.environments.oscillator.dynamics import slopes, time_courses
from probebench.environments.oscillator.kinetics import Reals
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.oracle import right_hand_side
from probebench.wire.oscillator import Edges, all_topologies
from tests.environments.oscillator.circuits import (
    CASCADE,
    CROWDED,
    REPRESSILATOR,
    TRUTH,
    relabelled,
    vector,
)

WHOLE = METHOD._replace(transient_blocks=0, window_blocks=2, early_exit=False)


def course(edges: Edges, vectors: Reals) -> Reals:
    """Proteins of the first vector over 100 units of time, (3, 400)."""
    levels: Reals = time_courses(edges, vectors, WHOLE).proteins[0]
    return levels


@pytest.mark.parametrize("index", range(0, 12_024, 501))
def test_slopes_are_those_of_the_textbook_form(index: int) -> None:
    edges = all_topologies()[index]
    state = np.random.Generator(np.random.Philox(key=index)).uniform(0.01, 1.2, (6, 20))
    found = slopes(edges, state, np.ascontiguousarray(TRUTH[:20].T))
    for column in range(20):
        expected = right_hand_side(state[:, column], 0.0, np.array(edges), np.array(TRUTH[column]))
        assert found[:, column] == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_a_gene_without_regulator_settles_at_full_induction() -> None:
    # Gene 0 of the cascade's canonical form has none: A = 1, so m = p = 1.
    levels = course((0, 0, 0, 1, 0, 0, 0, 1, 0), vector(leak=0.05))
    assert levels[0, -1] == pytest.approx(1.0, abs=1e-9)


def test_a_repressed_gene_settles_at_the_hill_function_of_its_repressor() -> None:
    levels = course((0, 0, 0, 2, 0, 0, 0, 1, 0), vector(leak=0.05, threshold=0.5, exponent=2.0))
    expected = 0.05 + 0.95 / (1.0 + (1.0 / 0.5) ** 2)
    assert levels[1, -1] == pytest.approx(expected, abs=1e-9)
    next_one = (expected / 0.5) ** 2
    assert levels[2, -1] == pytest.approx(0.05 + 0.95 * next_one / (1 + next_one), abs=1e-9)


def test_two_regulators_multiply() -> None:
    # Genes 0 and 1 are unregulated and at 1; gene 0 activates and gene 1 represses gene 2.
    levels = course((0, 0, 0, 0, 0, 0, 1, 2, 0), vector(leak=0.01, threshold=1.0, exponent=1.0))
    assert levels[2, -1] == pytest.approx(0.01 + 0.99 * 0.5 * 0.5, abs=1e-9)


def test_an_unregulated_gene_follows_its_exact_solution() -> None:
    # m = 1 - e^-at / 2, p' = b (m - p), from 0.5 both.
    a, b = 0.7, 2.1
    levels = course((0, 0, 0, 1, 0, 0, 0, 1, 0), vector(mrna_decay=a, protein_decay=b))[0]
    times = 0.25 * np.arange(1, 401)
    c = 0.5 * b / (b - a)
    exact = 1.0 - c * np.exp(-a * times) + (c - 0.5) * np.exp(-b * times)
    assert np.abs(levels - exact).max() < 2e-4
    assert np.abs(levels - exact)[200:].max() < 1e-9


def test_halving_the_step_divides_the_error_by_sixteen() -> None:
    def at_100(step: float) -> Reals:
        method = WHOLE._replace(step=step, block_steps=round(50 / step))
        found: Reals = time_courses(REPRESSILATOR, TRUTH[:16], method).proteins[..., -1]
        return found

    exact = at_100(0.25 / 8)
    errors = [np.abs(at_100(step) - exact).max() for step in (0.25, 0.125)]
    assert errors[0] < 1e-3
    assert 10 < errors[0] / errors[1] < 24


def test_levels_stay_between_leak_and_one() -> None:
    method = METHOD._replace(transient_blocks=1, window_blocks=1, early_exit=False)
    levels = time_courses(CROWDED, TRUTH[:64], method).proteins
    assert np.all(levels <= 1.0 + 1e-12)
    assert np.all(levels >= TRUTH[:64, 6:9].min(axis=1)[:, np.newaxis, np.newaxis])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_genes_have_no_names(order: tuple[int, ...]) -> None:
    edges, vectors = relabelled(REPRESSILATOR, TRUTH[:8], order)
    found = time_courses(edges, vectors, WHOLE).proteins[:, list(order)]
    assert np.array_equal(found, time_courses(REPRESSILATOR, TRUTH[:8], WHOLE).proteins)


def test_a_circuit_that_rests_is_left_and_has_no_course() -> None:
    found = time_courses(CASCADE, TRUTH[:16])
    assert found.rested.all()
    assert not found.proteins.any()
    to_the_end = time_courses(CASCADE, TRUTH[:16], METHOD._replace(early_exit=False))
    assert not to_the_end.rested.any()
    assert np.ptp(to_the_end.proteins, axis=2).max() < 1e-9
