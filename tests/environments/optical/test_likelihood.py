"""The likelihood that the estimator maximises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probebench.environments.optical.camera import draw_frame
from probebench.environments.optical.likelihood import Likelihood
from probebench.environments.optical.linearisation import psf_and_jacobian
from probebench.environments.optical.propagation import Reals, one_blas_thread
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    INCIDENT_OPD_NM,
    SMALL,
    expected_frames,
    frames,
)

DRAWS = 2000
ELSEWHERE_OPD_NM = INCIDENT_OPD_NM + np.array([30.0, 10, -20, 5, 15, -25])


def likelihood(frames_e: Any) -> Likelihood:
    return Likelihood(SMALL, np.array(frames_e), np.array(COMMANDS_OPD_NM), np.float64)


@pytest.fixture(scope="module")
def observed() -> Likelihood:
    return likelihood(frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 7))


def drawn() -> Iterator[Likelihood]:
    """The likelihood of many draws of the detector."""
    expected = expected_frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM)
    for seed in range(DRAWS):
        yield likelihood([draw_frame(e, 3.0, f"{seed:032x}", i) for i, e in enumerate(expected)])


@pytest.fixture(scope="module")
def at_the_truth() -> list[Any]:
    """The point of the truth for many draws of the detector."""
    with one_blas_thread():
        return [each.at(INCIDENT_OPD_NM) for each in drawn()]


def shifted_poisson(frames_e: Reals, incident_opd_nm: Reals) -> float:
    """Log-likelihood of counts + s^2 under Poisson of mean + s^2, but for log x!."""
    read_variance = SMALL.read_noise_e**2
    expected = np.array(expected_frames(SMALL, incident_opd_nm, COMMANDS_OPD_NM)) + read_variance
    shifted = np.array(frames_e) + read_variance
    return float(np.sum(shifted * np.log(expected) - expected))


def test_the_objective_is_the_negative_shifted_poisson_log_likelihood_but_for_a_constant() -> None:
    frames_e = np.array(frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 7))
    ours = likelihood(frames_e)
    fell = ours.at(ELSEWHERE_OPD_NM).objective - ours.at(INCIDENT_OPD_NM).objective
    rose = shifted_poisson(frames_e, INCIDENT_OPD_NM) - shifted_poisson(frames_e, ELSEWHERE_OPD_NM)
    assert fell == pytest.approx(rose, rel=1e-9)
    assert fell > 1000


def test_the_objective_is_zero_where_the_model_equals_the_images() -> None:
    perfect = likelihood(expected_frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM))
    assert abs(perfect.at(INCIDENT_OPD_NM).objective) < 1e-12
    assert perfect.at(INCIDENT_OPD_NM).gradient_norm < 1e-10
    assert perfect.at(INCIDENT_OPD_NM + 1e-3).objective > 1e-7


@pytest.mark.parametrize("at_opd_nm", [INCIDENT_OPD_NM, ELSEWHERE_OPD_NM])
@pytest.mark.parametrize("mode", range(6))
def test_the_gradient_is_the_slope_of_the_objective(
    observed: Likelihood, at_opd_nm: Reals, mode: int
) -> None:
    step_nm = 1e-3 * np.eye(6)[mode]
    ahead, behind = (observed.at(at_opd_nm + s).objective for s in (step_nm, -step_nm))
    gradient = observed.at(at_opd_nm).gradient
    assert gradient[mode] == pytest.approx(
        (ahead - behind) / 2e-3, abs=1e-6 * observed.at(at_opd_nm).gradient_norm
    )


def test_the_command_is_subtracted_from_the_incident_opd(observed: Likelihood) -> None:
    added = Likelihood(SMALL, np.array(observed._shifted) - 9, -np.array(COMMANDS_OPD_NM))
    assert observed.misfit_sigma(INCIDENT_OPD_NM) < 4
    assert added.misfit_sigma(INCIDENT_OPD_NM) > 100


def test_the_fisher_matrix_is_the_mean_curvature_of_the_objective() -> None:
    # Of images that equal the model the curvature is its own expectation.
    perfect = likelihood(expected_frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM))
    steps_nm = 1e-2 * np.eye(6)
    curvature = [
        (perfect.at(INCIDENT_OPD_NM + s).gradient - perfect.at(INCIDENT_OPD_NM - s).gradient) / 2e-2
        for s in steps_nm
    ]
    fisher = perfect.at(INCIDENT_OPD_NM).fisher
    assert np.abs(np.array(curvature) - fisher).max() < 1e-6 * np.abs(fisher).max()


def whitened(fisher: Reals, vectors: Reals) -> Reals:
    """Vectors whose covariance would be the unit matrix if theirs were ``fisher``."""
    return np.asarray(np.linalg.solve(np.linalg.cholesky(fisher), vectors.T).T)


def test_the_fisher_matrix_is_the_covariance_of_the_score(at_the_truth: list[Any]) -> None:
    scores = whitened(at_the_truth[0].fisher, np.array([p.gradient for p in at_the_truth]))
    covariance = scores.T @ scores / DRAWS
    # Each entry of 21 scatters by 1/sqrt(n), those of the diagonal by sqrt(2/n).
    scatter = np.sqrt((1 + np.eye(6)) / DRAWS)
    assert (np.abs(covariance - np.eye(6)) < 4 * scatter).all()
    assert (np.abs(scores.mean(axis=0)) < 4 / np.sqrt(DRAWS)).all()


def test_a_fisher_matrix_without_the_read_variance_is_not_the_covariance_of_the_score(
    at_the_truth: list[Any],
) -> None:
    residuals = INCIDENT_OPD_NM - np.array(COMMANDS_OPD_NM)
    images, jacobians = psf_and_jacobian(SMALL.optics, residuals)
    slopes = SMALL.photons_per_exposure * np.moveaxis(jacobians, 1, 0).reshape(6, -1)
    noiseless = (slopes / (SMALL.photons_per_exposure * images.ravel())) @ slopes.T
    scores = whitened(noiseless, np.array([p.gradient for p in at_the_truth]))
    assert np.trace(scores.T @ scores / DRAWS) / 6 < 1 - 4 * np.sqrt(2 / 6 / DRAWS)


def test_the_misfit_at_the_truth_has_mean_0_and_standard_deviation_1() -> None:
    misfits = np.array([each.misfit_sigma(INCIDENT_OPD_NM) for each in drawn()])
    assert abs(misfits.mean()) < 4 / np.sqrt(DRAWS)
    assert misfits.std() == pytest.approx(1, abs=4 * np.sqrt(0.5 / DRAWS))
    assert abs(stats.skew(misfits)) < 0.4


def test_the_misfit_of_a_wrong_wavefront_is_far_above(observed: Likelihood) -> None:
    assert observed.misfit_sigma(ELSEWHERE_OPD_NM) > 100


def test_negative_counts_are_as_smooth_as_others() -> None:
    negative = likelihood(np.full((2, 20, 20), -40.0))
    point, step_nm = negative.at(INCIDENT_OPD_NM), 1e-3 * np.eye(6)[0]
    ahead, behind = (negative.at(INCIDENT_OPD_NM + s).objective for s in (step_nm, -step_nm))
    assert point.finite
    assert point.gradient[0] == pytest.approx((ahead - behind) / 2e-3, rel=1e-6)


def test_overflow_gives_numbers_that_are_not_finite() -> None:
    assert not likelihood(np.full((2, 20, 20), 1e300)).at(INCIDENT_OPD_NM).finite


def test_one_point_is_evaluated_once_while_it_is_the_latest(observed: Likelihood) -> None:
    first = observed.at(INCIDENT_OPD_NM)
    assert observed.at(INCIDENT_OPD_NM.copy()) is first
    assert observed.at(ELSEWHERE_OPD_NM) is not first
    again = observed.at(INCIDENT_OPD_NM)
    assert again is not first
    assert again.objective == first.objective


@pytest.mark.parametrize("photons", [300, 30_000, 10**9])
def test_seven_digits_of_the_derivatives_change_neither_objective_nor_where_it_is_least(
    photons: int,
) -> None:
    camera = replace(SMALL, photons_per_exposure=photons)
    images = np.array(frames(camera, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 7))
    full, short = (
        Likelihood(camera, images, np.array(COMMANDS_OPD_NM), dtype)
        for dtype in (np.float64, np.float32)
    )
    for at_opd_nm in (INCIDENT_OPD_NM, ELSEWHERE_OPD_NM):
        one, other = full.at(at_opd_nm), short.at(at_opd_nm)
        assert one.objective == other.objective
        assert np.abs(one.fisher - other.fisher).max() < 1e-6 * np.abs(one.fisher).max()
    here, there = full.at(INCIDENT_OPD_NM), short.at(INCIDENT_OPD_NM)
    # The shift of the minimum, in standard deviations of the estimate.
    shift = np.linalg.solve(np.linalg.cholesky(here.fisher), there.gradient - here.gradient)
    assert np.linalg.norm(shift) < 1e-4
