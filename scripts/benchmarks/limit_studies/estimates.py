"""Ratios and rates of trials, with their uncertainties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from probebench.environments.optical.propagation import Reals
from scripts.benchmarks.limit_studies.trials import Trial

MODES = 6


def rate(successes: int, trials: int) -> dict[str, float]:
    """A share with its 95 % Wilson interval."""
    interval = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    return {"rate": successes / trials, "low": float(interval.low), "high": float(interval.high)}


def root_mean(squares: Reals) -> tuple[float, float]:
    """Root of a mean of independent squares, and its standard error (delta method)."""
    root = float(np.sqrt(np.mean(squares)))
    return root, float(np.std(squares, ddof=1) / (2 * root * np.sqrt(len(squares))))


def controlled(squares: Reals, control: Reals) -> Reals:
    """Squares of the same expectation and less variance.

    control: (n,), correlated with ``squares`` and known to have an expectation of
        zero.  Its regression is taken off (control variate; P. Glasserman, Monte
        Carlo Methods in Financial Engineering, 2003, 4.1).
    """
    covariance = np.cov(squares, control)
    adjusted: Reals = squares - covariance[0, 1] / covariance[1, 1] * control
    return adjusted


def ratio_figures(trials: Sequence[Trial]) -> dict[str, Any]:
    """RMS error over the floor, of the right basin and of all, and why it is that.

    ratio: root of the mean of |error|^2 over the squared floor of its own trial.
    ratio_of_all: the same of every estimate, of whichever basin.
    controlled_ratio: the same without most of the luck of the draw.  To first
        order in the noise the error of a trial is known, and so is its mean
        square; the difference is taken off.
    first_order_ratio: what it would be to first order in the noise.  It exceeds
        1 by what the shifted Poisson likelihood does not use; the rest of the
        ratio is what curvature adds at few photons.
    normalised_error: mean of the squared error over the reported covariance,
        over six, also without most of the luck of the draw.
    """
    right = [one for one in trials if one.right_basin]
    squares = np.array([one.error for one in right])
    expected = np.array([one.expected_linear_error for one in right])
    control = np.array([one.linear_error for one in right]) - expected
    ratio, standard_error = root_mean(squares)
    controlled_ratio, controlled_error = root_mean(controlled(squares, control))
    normalised = controlled_normalised_errors(right)
    return {
        "ratio": ratio,
        "standard_error": standard_error,
        "controlled_ratio": controlled_ratio,
        "controlled_standard_error": controlled_error,
        "first_order_ratio": float(np.sqrt(np.mean(expected))),
        "ratio_of_all": float(np.sqrt(np.mean([one.error for one in trials if one.estimated]))),
        "normalised_error": float(np.mean(normalised)),
        "normalised_error_standard_error": float(
            np.std(normalised, ddof=1) / np.sqrt(len(normalised))
        ),
        "floor_nm_rms": root_mean(np.array([one.floor_nm**2 for one in trials]))[0],
    }


def controlled_normalised_errors(trials: Sequence[Trial]) -> Reals:
    """Squared errors over the reported covariance and six, by ``controlled``."""
    linear = np.array([one.linear_normalised_error for one in trials])
    normalised = np.array([one.normalised_error for one in trials])
    return controlled(normalised, linear - MODES) / MODES


def basin_figures(trials: Sequence[Trial]) -> dict[str, Any]:
    """How many found the right basin, and what became of the others."""
    right = sum(one.right_basin for one in trials)
    return {
        "trials": len(trials),
        "right_basin": right,
        "wrong_but_listed": sum(one.listed for one in trials) - right,
        "without_estimate": sum(not one.estimated for one in trials),
        **rate(right, len(trials)),
    }
