"""Whether the reported covariance predicts the errors, over hundreds of fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.estimator import fit, likelihood_of
from probebench.environments.optical.evaluator import fisher_information
from probebench.environments.optical.linearisation import psf_and_jacobian
from probebench.environments.optical.propagation import Reals, one_blas_thread
from scripts.benchmarks.limit_studies.estimates import MODES, controlled
from scripts.benchmarks.limit_studies.trials import (
    DEVELOPMENT,
    PROBE,
    ZERO,
    Scene,
    Trial,
    draw,
    judge,
)

TRIALS = 500
PHOTONS = (10_000, 100_000, 1_000_000)
READ_NOISE_E = (1.0, 3.0, 5.0)
# A quarter of the pixels and of the pupil of the development camera, for speed;
# the statistics of a fit do not depend on how many there are.
CAMERA = replace(DEVELOPMENT, pupil_samples=32, pixels=16)
CHI_SQUARE = stats.chi2(MODES)
SIGNIFICANCE = 1e-3


def scene(index: int) -> Scene:
    camera = replace(
        CAMERA,
        photons_per_exposure=PHOTONS[index % 3],
        read_noise_e=READ_NOISE_E[index // 3 % 3],
    )
    return Scene("estimator statistics", camera, (ZERO, PROBE))


def fisher_without_read_variance(camera: Calibration, residuals: list[Reals]) -> Reals:
    psf, jacobian = psf_and_jacobian(camera.optics, np.array(residuals))
    weighted = jacobian / psf[:, np.newaxis]
    fisher: Reals = camera.photons_per_exposure * np.einsum("kiyx,kjyx->ij", weighted, jacobian)
    return fisher


def trial(index: int) -> tuple[Trial, float]:
    """The trial, and its normalised error had the read variance been left out."""
    given = scene(index)
    truth, frames_e = draw(given, index)
    residuals = [truth - np.array(command) for command in given.commands_opd_nm]
    with one_blas_thread():
        result = fit(given.camera, frames_e, given.commands_opd_nm)
        likelihood = likelihood_of(given.camera, frames_e, given.commands_opd_nm)
        bound = np.linalg.inv(fisher_information(given.camera, residuals))
        judged = judge(result, truth, likelihood, float(np.trace(bound)))
        error_nm = np.array(result.estimate_opd_nm) - truth
        overconfident = fisher_without_read_variance(given.camera, residuals)
    return judged, float(error_nm @ overconfident @ error_nm)


def complaints(normalised: Any, linear: Any) -> list[str]:
    """In which respects squared errors are not chi-square with six degrees of freedom."""
    count = len(normalised)
    mean_low, mean_high = stats.chi2(MODES * count).interval(1 - SIGNIFICANCE)
    # Of a chi-square with k degrees of freedom the variance is 2 k, and its
    # excess kurtosis 12 / k.
    variance = 2 * MODES
    spread = variance * np.sqrt(2 / (count - 1) + 12 / MODES / count)
    allowed = stats.norm.isf(SIGNIFICANCE / 2) * spread
    # The draws are the largest part of a mean's uncertainty, and are known.
    mean = float(np.mean(controlled(normalised, linear - MODES))) / MODES
    checks = {
        "distribution": stats.kstest(normalised, CHI_SQUARE.cdf).pvalue > SIGNIFICANCE,
        "mean": mean_low < np.sum(normalised) < mean_high,
        "variance": abs(np.var(normalised, ddof=1) - variance) < allowed,
        "mean with control variate": abs(mean - 1) < 0.01,
    }
    return [name for name, holds in checks.items() if not holds]


# One test, so that two workers do not both run the trials.
def test_normalised_errors_of_500_fits_follow_chi_square_with_six_degrees_of_freedom() -> None:
    trials = [trial(index) for index in range(TRIALS)]
    right = [(one, overconfident) for one, overconfident in trials if one.right_basin]
    print(f"{TRIALS - len(right)} of {TRIALS} fits in a wrong basin")
    normalised = np.array([one.normalised_error for one, _ in right])
    linear = np.array([one.linear_normalised_error for one, _ in right])

    assert len(right) >= 0.995 * TRIALS
    assert complaints(normalised, linear) == []

    # A covariance that is wrong would be noticed: by a tenth too large or too
    # small, of five modes, scattered too far, or without the read noise.
    assert "mean with control variate" in complaints(normalised / 1.1, linear)
    assert "mean with control variate" in complaints(normalised * 1.1, linear)
    five_modes = stats.chi2(MODES - 1).ppf(CHI_SQUARE.cdf(normalised))
    assert {"distribution", "mean"} <= set(complaints(five_modes, linear))
    scattered = MODES + 1.3 * (normalised - MODES)
    assert "variance" in complaints(scattered, linear)
    assert "distribution" in complaints(np.array([o for _, o in right]), linear)
