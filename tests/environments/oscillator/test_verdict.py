"""The criteria of an oscillation, each at its threshold, on made-up courses."""

from __future__ import annotations

import numpy as np
import pytest

from probebench.environments.oscillator.kinetics import Reals
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.verdict import judge_courses, judge_levels

TIMES = METHOD.step * np.arange(1, METHOD.window_steps + 1)
PERIOD = 21.7


def wave(
    mean: float = 0.5, amplitude: float = 0.2, period: float = PERIOD, decay_time: float = np.inf
) -> Reals:
    levels: Reals = mean + amplitude * np.exp(-TIMES / decay_time) * np.sin(
        2 * np.pi * TIMES / period
    )
    return levels


def oscillates(levels: Reals) -> bool:
    return judge_levels(levels) != (0.0, 0.0)


def test_a_sine_has_its_contrast_and_period() -> None:
    contrast, period = judge_levels(wave())
    # The crest falls between two samples, a chord off the circle.
    assert contrast == pytest.approx(0.2 / 0.5, rel=1e-3)
    assert period == pytest.approx(PERIOD, rel=1e-4)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param(wave(amplitude=0.0251), True, id="contrast just enough"),
        pytest.param(wave(amplitude=0.0249), False, id="contrast just short"),
        pytest.param(wave(mean=0.01, amplitude=0.00252), True, id="swing just enough"),
        pytest.param(wave(mean=0.01, amplitude=0.00248), False, id="swing just short"),
        pytest.param(wave(period=300 / 5.1), True, id="four cycles and more"),
        pytest.param(wave(period=300 / 4.9), False, id="less than four whole cycles"),
        # Twelve cycles between the first and the last whole one.
        pytest.param(wave(decay_time=12 * PERIOD / -np.log(0.91)), True, id="hardly decays"),
        pytest.param(wave(decay_time=12 * PERIOD / -np.log(0.89)), False, id="decays"),
        pytest.param(np.full(METHOD.window_steps, 0.5), False, id="rests"),
        pytest.param(np.zeros(METHOD.window_steps), False, id="nothing"),
        pytest.param(0.1 + 0.8 * TIMES / 300, False, id="drifts"),
    ],
)
def test_each_criterion_decides_at_its_threshold(levels: Reals, *, expected: bool) -> None:
    assert oscillates(levels) == expected


def test_a_growing_oscillation_is_one() -> None:
    assert oscillates(wave(amplitude=0.05, decay_time=-300.0))


@pytest.mark.parametrize(("spread", "expected"), [(0.09, True), (0.11, False)])
def test_periods_may_vary_by_a_tenth(spread: float, *, expected: bool) -> None:
    # Cycles alternate between two lengths, so that the CV is their half difference.
    lengths = PERIOD * np.resize([1 - spread, 1 + spread], 14)
    turns = np.interp(TIMES, np.concatenate([[0.0], np.cumsum(lengths)]), np.arange(15))
    # 13 whole cycles lie in the window: an odd one out changes the CV a little.
    assert oscillates(0.5 + 0.2 * np.sin(2 * np.pi * turns)) == expected


def test_an_oscillation_that_stops_in_the_last_block_is_none() -> None:
    levels = wave()
    levels[-METHOD.block_steps :] = levels[-METHOD.block_steps]
    assert not oscillates(levels)
    # No other criterion notices: the cycles that are whole are regular.
    assert judge_levels(levels, METHOD._replace(rest_range=-1.0)) != (0.0, 0.0)


def test_one_oscillating_protein_makes_a_circuit_oscillate() -> None:
    rest = np.full(METHOD.window_steps, 0.5)
    courses = np.array([[rest, rest, wave()], [rest, rest, rest], [wave(0.9), wave(0.3), rest]])
    found = judge_courses(courses)
    assert found.oscillates.tolist() == [True, False, True]
    assert found.count == 2
    assert found.contrast[1] == found.period[1] == 0.0
    # Of two, the one with the larger contrast is shown.
    assert found.contrast[2] == judge_levels(wave(0.3))[0]
