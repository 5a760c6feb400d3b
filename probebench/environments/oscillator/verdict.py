"""Whether a time course oscillates, judged in NumPy: the reference.

A protein oscillates if it meets the criteria of ``Method`` over the window; a
circuit does if any of its proteins does.  Its contrast and period
are those of the oscillating protein with the largest contrast, the first of
equals.  Crossings of the mid-level are interpolated linearly.  The criteria on
amplitudes, periods and rest tell a sustained oscillation from one that decays,
has not settled, or stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from probebench.environments.oscillator.kinetics import Reals
from probebench.environments.oscillator.method import METHOD, Method

Flags: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Verdicts:
    """What is said of each kinetic vector.

    oscillates: (vectors,) bool.
    contrast, period: (vectors,) float64, of the judged protein; 0 where the
        circuit does not oscillate.
    """

    oscillates: Flags
    contrast: Reals
    period: Reals

    @property
    def count(self) -> int:
        """How many vectors oscillate."""
        return int(np.count_nonzero(self.oscillates))

    def same_bits(self, other: Verdicts) -> bool:
        """Whether every figure is the same to the last bit."""
        return all(
            mine.tobytes() == theirs.tobytes()
            for mine, theirs in (
                (self.oscillates, other.oscillates),
                (self.contrast, other.contrast),
                (self.period, other.period),
            )
        )


def judge_courses(proteins: Reals, method: Method = METHOD) -> Verdicts:
    """Judge (vectors, 3, samples) levels, a sample after every step."""
    found = Verdicts(
        np.zeros(len(proteins), dtype=np.bool_), np.zeros(len(proteins)), np.zeros(len(proteins))
    )
    for vector, courses in enumerate(proteins):
        for levels in courses:
            contrast, period = judge_levels(levels, method)
            if contrast > found.contrast[vector]:
                found.oscillates[vector] = True
                found.contrast[vector], found.period[vector] = contrast, period
    return found


def judge_levels(levels: Reals, method: Method = METHOD) -> tuple[float, float]:
    """Contrast and period of one protein, (samples,) levels; zeros if it does not oscillate."""
    high, low = levels.max(), levels.min()
    swings = high - low >= method.min_swing
    if not (swings and high - low >= method.min_contrast * (high + low)):
        return 0.0, 0.0
    end = levels[-method.block_steps :]
    if end.max() - end.min() <= method.rest_range * end.max():
        return 0.0, 0.0
    middle = 0.5 * (high + low)
    before = np.flatnonzero((levels[:-1] < middle) & (levels[1:] >= middle))
    if len(before) <= method.min_cycles:
        return 0.0, 0.0
    fraction = (middle - levels[before]) / (levels[before + 1] - levels[before])
    periods = np.diff(before + fraction)
    first = np.ptp(levels[before[0] + 1 : before[1] + 1])
    last = np.ptp(levels[before[-2] + 1 : before[-1] + 1])
    # Summed in order, as the compiled kernel does; NumPy's own sum is pairwise.
    mean = np.cumsum(periods)[-1] / len(periods)
    variance = np.cumsum((periods - mean) * (periods - mean))[-1] / len(periods)
    steady = last >= method.min_amplitude_ratio * first
    regular = variance <= (method.max_period_cv * method.max_period_cv) * (mean * mean)
    if not (steady and regular):
        return 0.0, 0.0
    return float((high - low) / (high + low)), float(method.step * mean)
