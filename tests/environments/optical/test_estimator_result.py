"""What the estimator reports: ties, suggestions, fallbacks, and that it found nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.estimator import camera_fallback, fit
from probebench.environments.optical.starts import disclosure
from probebench.wire.optical_fit import Fit
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    INCIDENT_OPD_NM,
    PROBE_OPD_NM,
    SMALL,
    TWIN_SIGNS,
    ZERO_OPD_NM,
    expected_frames,
    frames,
)


def fitted(camera: Calibration = SMALL) -> Fit:
    return fit(camera, frames(camera, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 1), COMMANDS_OPD_NM)


@pytest.fixture(scope="module")
def found() -> Fit:
    return fitted()


# -- the twin -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "commands",
    [[ZERO_OPD_NM, ZERO_OPD_NM], [ZERO_OPD_NM, [1e-9, 0, 0, 0, 0, 0]]],
    ids=["zero twice", "a billionth of a nanometre apart"],
)
@pytest.mark.parametrize("signs", [np.ones(6), TWIN_SIGNS], ids=["truth", "twin"])
def test_images_under_the_zero_command_alone_leave_a_tie_that_the_truth_does_not_break(
    commands: list[list[float]], signs: Any
) -> None:
    images = frames(SMALL, INCIDENT_OPD_NM, [ZERO_OPD_NM, ZERO_OPD_NM], 1)
    result = fit(SMALL, images, commands)
    (other,) = result.other_basins
    assert other.tie
    estimate = np.array(result.estimate_opd_nm)
    assert TWIN_SIGNS * estimate == pytest.approx(np.array(other.opd_nm), abs=1e-2)
    # The same images come of the twin, so the estimate cannot depend on which was true.
    of_the_other = frames(SMALL, signs * INCIDENT_OPD_NM, [ZERO_OPD_NM, ZERO_OPD_NM], 1)
    again = fit(SMALL, of_the_other, commands)
    assert estimate == pytest.approx(np.array(again.estimate_opd_nm), abs=1e-2)


def test_a_probe_breaks_the_tie(found: Fit) -> None:
    assert not any(other.tie for other in found.other_basins)
    assert found.estimate_opd_nm == pytest.approx(INCIDENT_OPD_NM, abs=6)


def test_another_basin_within_reach_is_reported_with_its_distance() -> None:
    # So little light that the images hardly tell the wavefront from its twin.
    dim = replace(SMALL, photons_per_exposure=300)
    weak = [ZERO_OPD_NM, [15.0, 0, 0, 0, 0, 0]]
    result = fit(dim, expected_frames(dim, INCIDENT_OPD_NM, weak), weak)
    assert result.other_basins
    for other in result.other_basins:
        run = result.starts[other.start_indices[0]]
        assert run.objective is not None
        assert result.negative_log_likelihood is not None
        distance = run.objective - result.negative_log_likelihood
        assert other.log_likelihood_distance == pytest.approx(max(0.0, distance))
        assert other.tie == (distance <= disclosure(dim).tie_within_log_likelihood)
        assert distance <= disclosure(dim).other_basins_within_log_likelihood


@pytest.mark.parametrize("photons", [300, 30_000, 10**8])
def test_every_converged_run_ends_at_the_estimate_in_a_reported_basin_or_far_below_it(
    photons: int,
) -> None:
    camera = replace(SMALL, photons_per_exposure=photons)
    result = fitted(camera)
    assert result.negative_log_likelihood is not None
    precision = np.linalg.inv(np.array(result.covariance_nm2, dtype=np.float64))
    listed = {index for other in result.other_basins for index in other.start_indices}
    for index, run in enumerate(result.starts):
        if run.status != "converged" or run.objective is None:
            continue
        step_nm = np.array(run.end_opd_nm) - np.array(result.estimate_opd_nm)
        here = np.sqrt(step_nm @ precision @ step_nm) <= 0.1
        behind = run.objective - result.negative_log_likelihood
        far = behind > disclosure(camera).other_basins_within_log_likelihood
        assert [bool(here), index in listed, far].count(True) == 1


# -- suggestion and fallback ------------------------------------------------------------


def test_the_suggestion_is_the_estimate_where_it_is_within_the_bounds(found: Fit) -> None:
    assert found.suggested_command_opd_nm == found.estimate_opd_nm
    assert found.suggested_command_clipped is False


def test_a_suggestion_that_was_clipped_says_so() -> None:
    result = fitted(replace(SMALL, command_bound_nm=50.0))
    assert result.estimate_opd_nm is not None
    assert result.suggested_command_opd_nm == np.clip(result.estimate_opd_nm, -50, 50).tolist()
    assert result.suggested_command_opd_nm[0] == 50.0
    assert result.suggested_command_clipped is True


def test_the_camera_score_estimates_the_sum_of_squares_of_the_image_without_bias() -> None:
    dim = replace(SMALL, photons_per_exposure=1000)
    (expected,) = expected_frames(dim, INCIDENT_OPD_NM, [ZERO_OPD_NM])
    scores = [
        camera_fallback(dim, frames(dim, INCIDENT_OPD_NM, [ZERO_OPD_NM], s), [ZERO_OPD_NM]).scores[
            0
        ]
        for s in range(400)
    ]
    measured = np.array(scores, float)
    truth = np.sum(expected**2) / dim.photons_per_exposure**2
    scatter = measured.std() / np.sqrt(measured.size)
    assert abs(measured.mean() - truth) < 4 * scatter
    # Without the correction for noise it would be off by (m + s^2) of every pixel.
    uncorrected = (expected.sum() + 9 * expected.size) / dim.photons_per_exposure**2
    assert uncorrected > 10 * scatter


def test_the_fallback_is_the_command_of_the_sharpest_image() -> None:
    commands = [
        ZERO_OPD_NM,
        PROBE_OPD_NM,
        (0.9 * INCIDENT_OPD_NM).tolist(),
        (-INCIDENT_OPD_NM).tolist(),
    ]
    fallback = camera_fallback(SMALL, frames(SMALL, INCIDENT_OPD_NM, commands, 1), commands)
    assert fallback.exposure_index == 2
    assert fallback.command_opd_nm == commands[2]
    residual_nm = [np.linalg.norm(INCIDENT_OPD_NM - np.array(c)) for c in commands]
    by_score = np.argsort([-score for score in fallback.scores if score is not None])
    assert by_score[0] == np.argmin(residual_nm)
    assert by_score[-1] == np.argmax(residual_nm)


def test_of_equal_scores_the_first_is_taken() -> None:
    (image,) = frames(SMALL, INCIDENT_OPD_NM, [ZERO_OPD_NM], 1)
    assert camera_fallback(SMALL, [image, image], COMMANDS_OPD_NM).exposure_index == 0


# -- numbers that no camera gives ---------------------------------------------------------

NOTHING, HUGE = np.zeros((20, 20)), np.full((20, 20), 1e300)


@pytest.mark.parametrize(
    "images",
    [[NOTHING, NOTHING], [HUGE, HUGE], [-HUGE, HUGE], [NOTHING, HUGE], [NOTHING - 40] * 2],
    ids=["nothing", "huge", "huge of both signs", "nothing and huge", "negative"],
)
def test_images_that_show_nothing_are_a_typed_failure_with_the_fallback(images: Any) -> None:
    result = fit(SMALL, images, COMMANDS_OPD_NM)
    assert result.status == "numerical_failure"
    assert result.failure is not None
    assert result.estimate_opd_nm is None
    assert result.covariance_nm2 is None
    assert result.suggested_command_opd_nm == result.fallback.command_opd_nm
    assert result.suggested_command_clipped is False
    assert "NaN" not in result.model_dump_json()
    assert Fit.model_validate_json(result.model_dump_json()) == result


def test_a_score_that_overflows_is_null_and_never_the_fallback() -> None:
    fallback = camera_fallback(SMALL, [HUGE, NOTHING], COMMANDS_OPD_NM)
    assert fallback.scores[0] is None
    assert fallback.exposure_index == 1


def test_a_direction_that_the_images_do_not_show_is_a_failure() -> None:
    # No aberration, no probe: the image is at its sharpest, and even modes have no slope.
    images = expected_frames(SMALL, np.zeros(6), [ZERO_OPD_NM, ZERO_OPD_NM])
    result = fit(SMALL, images, [ZERO_OPD_NM, ZERO_OPD_NM])
    assert result.status == "numerical_failure"
    assert result.failure == "the Fisher matrix at the least objective is singular"
    assert result.suggested_command_opd_nm == ZERO_OPD_NM
