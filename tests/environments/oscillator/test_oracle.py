"""Verdicts against linear stability and another integrator, and the known traps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import odeint, solve_ivp

from probebench.environments.oscillator.kinetics import Reals
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.oracle import (
    complex_growth_rate,
    growth_rate,
    jacobian,
    judge_lsoda,
    nearest_equilibrium,
    right_hand_side,
    ring_equilibrium,
)
from probebench.environments.oscillator.scoring import judge_compiled
from probebench.environments.oscillator.verdict import judge_courses
from probebench.wire.oscillator import Edges, edges_of
from tests.environments.oscillator.circuits import (
    CROWDED,
    GOODWIN,
    REPRESSILATOR,
    TRUTH,
    vector,
)

FREQUENT = edges_of("001200210")
OSCILLATING = judge_compiled(FREQUENT, TRUTH).oscillates
NO_DAMPING_TESTS = METHOD._replace(min_amplitude_ratio=0.0, max_period_cv=np.inf)


def growth_rates(edges: Edges) -> Reals:
    return np.array([growth_rate(edges, one, ring_equilibrium(edges, one)) for one in TRUTH])


# -- linear stability ---------------------------------------------------------


@pytest.mark.parametrize("edges", [REPRESSILATOR, GOODWIN])
def test_no_stable_single_ring_is_said_to_oscillate(edges: Edges) -> None:
    rates = growth_rates(edges)
    found = judge_compiled(edges, TRUTH).oscillates
    assert found.sum() > 600
    assert not np.any(found & (rates <= 0))
    # A ring with an unstable equilibrium oscillates (J. Mallet-Paret and H. L.
    # Smith, J. Dyn. Differ. Equ. 2, 367, 1990); next to the Hopf point it has
    # not settled within the transient.
    assert np.all(rates[~found] < 0.0025)


def test_without_the_damping_tests_stable_rings_would_be_said_to_oscillate() -> None:
    found = judge_compiled(REPRESSILATOR, TRUTH, NO_DAMPING_TESTS).oscillates
    assert np.sum(found & (growth_rates(REPRESSILATOR) <= 0)) > 10


def test_the_symmetric_ring_loses_stability_where_its_loop_gain_says() -> None:
    # With all rates 1 the loop's eigenvalues are -1 + G^(1/2) e^(i pi/6 ..), G
    # the slope of the repression: the Hopf point is at G = 4/3.
    for threshold in (0.1, 0.3, 0.9):
        one = vector(threshold=threshold, exponent=3.0, leak=0.01)
        (level, *others) = ring_equilibrium(REPRESSILATOR, one[0])
        assert others == pytest.approx([level, level], abs=1e-12)
        w = (level / threshold) ** 3
        gain = 0.99 * 3 / level * w / (1 + w) ** 2
        rate = growth_rate(REPRESSILATOR, one[0], np.full(3, level))
        assert rate == pytest.approx(-1 + np.sqrt(gain) * np.cos(np.pi / 6), abs=1e-12)
        assert (rate > 0) == (gain > 4 / 3)


def test_the_jacobian_is_the_slope_of_the_right_hand_side() -> None:
    for one in TRUTH[:20]:
        proteins = np.array([0.3, 0.5, 0.7])
        state = np.concatenate([proteins, proteins])
        for column in range(6):
            step = np.zeros(6)
            step[column] = 1e-6
            above, below = (
                right_hand_side(state + sign * step, 0.0, np.array(CROWDED), np.array(one))
                for sign in (1, -1)
            )
            expected = (above - below) / 2e-6
            found = jacobian(CROWDED, one, proteins)[:, column]
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_newtons_method_finds_the_equilibrium_of_a_ring() -> None:
    for one in TRUTH[:20]:
        expected = ring_equilibrium(REPRESSILATOR, one)
        found = nearest_equilibrium(REPRESSILATOR, one, expected * 1.05)
        assert found == pytest.approx(expected, rel=1e-9)


def test_growth_of_a_spiral_is_that_of_a_complex_pair() -> None:
    one = vector(threshold=0.1, exponent=4.0)[0]
    proteins = ring_equilibrium(REPRESSILATOR, one)
    assert complex_growth_rate(REPRESSILATOR, one, proteins) == growth_rate(
        REPRESSILATOR, one, proteins
    )
    # Unregulated genes alone have none.
    assert complex_growth_rate((0, 0, 0, 1, 0, 0, 1, 0, 0), one * 1.1, proteins) == -np.inf


@pytest.mark.parametrize(
    "edges", [CROWDED, (0, 0, 0, 1, 0, 0, 1, 0, 0), (0, 0, 1, 1, 0, 0, 0, 1, 0)]
)
def test_only_a_single_negative_ring_has_a_ring_equilibrium(edges: Edges) -> None:
    with pytest.raises(ValueError, match="single negative ring"):
        ring_equilibrium(edges, TRUTH[0])


# -- another integrator -------------------------------------------------------


@pytest.mark.parametrize("edges", [FREQUENT, GOODWIN, CROWDED])
def test_lsoda_gives_the_same_verdicts(edges: Edges) -> None:
    assert np.array_equal(
        judge_lsoda(edges, TRUTH[:40]).oscillates, judge_compiled(edges, TRUTH[:40]).oscillates
    )


def test_early_exit_changes_no_verdict() -> None:
    to_the_end = METHOD._replace(early_exit=False)
    for edges in (FREQUENT, REPRESSILATOR, CROWDED):
        usual = judge_compiled(edges, TRUTH[:512])
        assert usual.same_bits(judge_compiled(edges, TRUTH[:512], to_the_end))


def test_an_oscillation_that_dies_in_the_last_block_is_none_with_and_without_early_exit() -> None:
    # Spirals for 500 units of time, then falls to a stable state for good.
    edges, dying = edges_of("002102111"), TRUTH[541:542]
    assert judge_compiled(edges, dying).count == 0
    to_the_end = METHOD._replace(early_exit=False)
    assert judge_compiled(edges, dying, to_the_end).count == 0
    assert judge_compiled(edges, dying, to_the_end._replace(rest_range=-1.0)).count == 1


# -- traps --------------------------------------------------------------------


def test_odeint_with_its_default_number_of_steps_reaches_no_window() -> None:
    # It returns an array all the same, unfilled after the transient, in which
    # nothing oscillates: only its report says so.
    for one in TRUTH[OSCILLATING][:12]:
        with pytest.raises(ArithmeticError, match="Excess work"):
            judge_lsoda(FREQUENT, one[np.newaxis], max_steps=500)
    assert judge_lsoda(FREQUENT, TRUTH[OSCILLATING][:12]).count == 12


def test_default_tolerances_flip_verdicts() -> None:
    times = METHOD.transient_time + METHOD.step * np.arange(1, METHOD.window_steps + 1)
    near = np.flatnonzero(np.abs(growth_rates(REPRESSILATOR)) < 0.006)[:16]

    def course(one: Reals) -> Reals:
        found = solve_ivp(
            lambda time, state: right_hand_side(state, time, np.array(REPRESSILATOR), one),
            (0.0, times[-1]),
            np.full(6, METHOD.initial_level),
            method="LSODA",
            t_eval=times,
        )
        levels: Reals = found.y[3:]
        return levels

    loose = judge_courses(np.array([course(np.array(TRUTH[index])) for index in near]))
    tight = judge_compiled(REPRESSILATOR, TRUTH[near])
    assert np.array_equal(tight.oscillates, judge_lsoda(REPRESSILATOR, TRUTH[near]).oscillates)
    assert np.sum(loose.oscillates != tight.oscillates) >= 2


def test_a_transient_of_100_loses_oscillators() -> None:
    short = METHOD._replace(transient_blocks=2)
    assert short.transient_time == 100.0
    for edges in (REPRESSILATOR, GOODWIN):
        usual = judge_compiled(edges, TRUTH).oscillates
        early = judge_compiled(edges, TRUTH, short).oscillates
        assert np.sum(usual & ~early) > 5 * np.sum(early & ~usual)


def test_the_oracle_integrates_from_the_same_state() -> None:
    # Otherwise its agreement would say little about circuits with two attractors.
    levels = odeint(
        right_hand_side,
        np.full(6, METHOD.initial_level),
        [0.0, 1e-9],
        args=(np.array(CROWDED), np.array(TRUTH[0])),
    )
    assert levels[-1] == pytest.approx(np.full(6, 0.5), abs=1e-8)
