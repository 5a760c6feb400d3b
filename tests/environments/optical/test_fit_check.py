"""A saved fit that passes is the fit of its images; one that was touched is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from probebench.environments.optical import fit_check
from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.estimator import fit, likelihood_of, report
from probebench.environments.optical.fit_check import check_fit
from probebench.environments.optical.search import Run, end_status, run_from
from probebench.environments.optical.starts import (
    ITERATIONS_PER_START,
    gradient_tolerance_per_nm,
    starts_opd_nm,
)
from probebench.wire.optical_fit import Fit
from tests.environments.optical.forgeries import FORGERIES, Forgery, moved, put
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    DEVELOPMENT,
    INCIDENT_OPD_NM,
    SMALL,
    ZERO_OPD_NM,
    expected_frames,
    frames,
    wavefront,
)

ZERO_TWICE = [ZERO_OPD_NM, ZERO_OPD_NM]
IMAGES = frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 1)
TIGHT = replace(SMALL, command_bound_nm=50.0)


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    return fit(SMALL, IMAGES, COMMANDS_OPD_NM).model_dump()


@pytest.fixture(scope="module")
def tied() -> tuple[Any, dict[str, Any]]:
    images = frames(SMALL, INCIDENT_OPD_NM, ZERO_TWICE, 1)
    return images, fit(SMALL, images, ZERO_TWICE).model_dump()


@pytest.fixture(scope="module")
def failed() -> tuple[Any, dict[str, Any]]:
    images = [np.full((20, 20), 1e300), *IMAGES[1:]]
    return images, fit(SMALL, images, COMMANDS_OPD_NM).model_dump()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "camera",
    [
        SMALL,
        DEVELOPMENT,
        TIGHT,
        replace(SMALL, photons_per_exposure=300),
        replace(SMALL, photons_per_exposure=10**9, read_noise_e=0.1),
        replace(SMALL, wavelength_nm=1700.0),
    ],
    ids=["small", "development", "tight bounds", "dim", "bright", "infrared"],
)
def test_a_fit_passes_on_its_own_images(camera: Calibration, seed: int) -> None:
    images = frames(camera, wavefront(seed, 100.0), COMMANDS_OPD_NM, seed)
    check_fit(camera, images, COMMANDS_OPD_NM, fit(camera, images, COMMANDS_OPD_NM))


def test_a_fit_with_a_tie_passes(tied: tuple[Any, dict[str, Any]]) -> None:
    images, saved = tied
    assert saved["other_basins"][0]["tie"]
    check_fit(SMALL, images, ZERO_TWICE, Fit(**saved))


def test_fits_that_failed_pass(failed: tuple[Any, dict[str, Any]]) -> None:
    images, saved = failed
    check_fit(SMALL, images, COMMANDS_OPD_NM, Fit(**saved))
    singular = expected_frames(SMALL, np.zeros(6), ZERO_TWICE)
    check_fit(SMALL, singular, ZERO_TWICE, fit(SMALL, singular, ZERO_TWICE))
    beyond = frames(SMALL, np.array([600.0, -30, 20, 40, -25, 10]), COMMANDS_OPD_NM, 1)
    check_fit(SMALL, beyond, COMMANDS_OPD_NM, fit(SMALL, beyond, COMMANDS_OPD_NM))


def test_a_fit_passes_whose_last_bits_another_processor_would_change(
    honest: dict[str, Any],
) -> None:
    near = copy.deepcopy(honest)
    near["covariance_nm2"] = (np.array(near["covariance_nm2"]) * (1 + 1e-9)).tolist()
    near["misfit_sigma"] += 1e-10
    near["fallback"]["scores"] = [score * (1 + 1e-12) for score in near["fallback"]["scores"]]
    for run in near["starts"]:
        if run["gradient_norm_per_nm"] is not None:
            run["gradient_norm_per_nm"] *= 1 + 1e-9
    check_fit(SMALL, IMAGES, COMMANDS_OPD_NM, Fit(**near))


# -- forgeries ----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_field_is_found_and_named(honest: dict[str, Any], name: str) -> None:
    forge, sentence = FORGERIES[name]
    saved = copy.deepcopy(honest)
    forge(saved)
    with pytest.raises(ValueError, match=sentence):
        check_fit(SMALL, IMAGES, COMMANDS_OPD_NM, Fit.model_validate(saved))


def test_every_field_of_a_fit_is_forged_here(honest: dict[str, Any]) -> None:
    touched: set[str] = set()
    for forge, _ in FORGERIES.values():
        saved = copy.deepcopy(honest)
        forge(saved)
        touched |= {field for field in honest if saved[field] != honest[field]}
        touched |= {
            f"starts.{field}"
            for was, now in zip(honest["starts"], saved["starts"], strict=False)
            for field in was
            if was[field] != now[field]
        }
    assert touched == {*honest, *(f"starts.{field}" for field in honest["starts"][0])}


@pytest.mark.parametrize(
    "change",
    [
        put("other_basins", value=[]),
        put("other_basins", 0, "tie", value=False),
        put("other_basins", 0, "log_likelihood_distance", value=1.0),
        put("other_basins", 0, "opd_nm", value=moved),
        put("other_basins", 0, "start_indices", value=[8]),
    ],
    ids=["left out", "no tie", "distance", "place", "starts"],
)
def test_a_tie_cannot_be_hidden(tied: tuple[Any, dict[str, Any]], change: Forgery) -> None:
    images, honest = tied
    saved = copy.deepcopy(honest)
    change(saved)
    with pytest.raises(ValueError, match="other basins"):
        check_fit(SMALL, images, ZERO_TWICE, Fit(**saved))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (put("status", value="converged"), "its status"),
        (put("failure", value=None), "its failure"),
        (put("estimate_opd_nm", value=ZERO_OPD_NM), "its estimate"),
        (put("suggested_command_opd_nm", value=moved), "its suggested command"),
        (put("suggested_command_clipped", value=True), "was clipped"),
        (put("starts", 2, "iterations", value=4), "start 2 has no end"),
        (put("starts", 2, "status", value="converged"), "start 2 has no end"),
        (put("fallback", "scores", 0, value=0.5), "its fallback"),
    ],
)
def test_a_forged_failure_is_found(
    failed: tuple[Any, dict[str, Any]], change: Forgery, sentence: str
) -> None:
    images, honest = failed
    saved = copy.deepcopy(honest)
    change(saved)
    with pytest.raises(ValueError, match=sentence):
        check_fit(SMALL, images, COMMANDS_OPD_NM, Fit(**saved))


def test_a_fit_of_other_images_or_under_other_bounds_is_found(honest: dict[str, Any]) -> None:
    other = frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 2)
    with pytest.raises(ValueError, match="other images or commands"):
        check_fit(SMALL, other, COMMANDS_OPD_NM, Fit(**honest))
    with pytest.raises(ValueError, match="other images or commands"):
        check_fit(SMALL, IMAGES[::-1], COMMANDS_OPD_NM, Fit(**honest))
    with pytest.raises(ValueError, match="suggested command"):
        check_fit(TIGHT, IMAGES, COMMANDS_OPD_NM, Fit(**honest))
    with pytest.raises(ValueError, match="starts are not the disclosed"):
        check_fit(replace(SMALL, wavelength_nm=851.0), IMAGES, COMMANDS_OPD_NM, Fit(**honest))
    with pytest.raises(ValueError, match="objective of start"):
        check_fit(replace(SMALL, read_noise_e=3.1), IMAGES, COMMANDS_OPD_NM, Fit(**honest))


def test_an_end_far_outside_any_camera_is_an_objection_and_no_exception(
    honest: dict[str, Any],
) -> None:
    saved = copy.deepcopy(honest)
    saved["starts"][3]["end_opd_nm"] = [1e308] * 6
    with pytest.raises(ValueError, match="objective of start 3"):
        check_fit(SMALL, IMAGES, COMMANDS_OPD_NM, Fit(**saved))


# -- fits that are told as failures -----------------------------------------------------


def honest_runs() -> list[Run]:
    likelihood, runs = likelihood_of(SMALL, IMAGES, COMMANDS_OPD_NM), list[Run]()
    for start in starts_opd_nm(SMALL):
        runs.append(run_from(likelihood, start, SMALL, runs))
    return runs


def overflowed(run: Run) -> Run:
    return Run(run.start_opd_nm, 0, "not_finite")


def ended_at(run: Run, end_opd_nm: Any, iterations: int) -> Run:
    """A run that is said to have ended just here, with all that is true of the place."""
    point = likelihood_of(SMALL, IMAGES, COMMANDS_OPD_NM).at(end_opd_nm)
    tolerance = gradient_tolerance_per_nm(SMALL)
    status = end_status(end_opd_nm, point.gradient_norm, iterations, tolerance)
    return Run(run.start_opd_nm, iterations, status, end_opd_nm, point.objective, point)


def stalled(run: Run) -> Run:
    return ended_at(run, run.start_opd_nm + 1.0, 3)


def ran_out_of_iterations(run: Run) -> Run:
    return ended_at(run, run.start_opd_nm + 1.0, ITERATIONS_PER_START)


def left_the_bound(run: Run) -> Run:
    return ended_at(run, run.start_opd_nm + 600.0, 3)


LIES = [overflowed, stalled, ran_out_of_iterations, left_the_bound]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_fit_that_converged_cannot_be_told_as_a_failure(lie: Callable[[Run], Run]) -> None:
    forged = report(SMALL, IMAGES, COMMANDS_OPD_NM, list(map(lie, honest_runs())))
    assert forged.status == "numerical_failure"
    with pytest.raises(ValueError, match=r"start 0 is said to have ended as .* converges when"):
        check_fit(SMALL, IMAGES, COMMANDS_OPD_NM, forged)


@pytest.mark.parametrize("lie", [overflowed, stalled, left_the_bound], ids=lambda lie: lie.__name__)
def test_no_start_that_found_a_minimum_can_be_told_to_have_found_none(
    lie: Callable[[Run], Run],
) -> None:
    for index, run in enumerate(runs := honest_runs()):
        if any(other.joined == index for other in runs):
            continue  # those that joined it would belie it before
        lied = [*runs[:index], lie(run), *runs[index + 1 :]]
        forged = report(SMALL, IMAGES, COMMANDS_OPD_NM, lied)
        with pytest.raises(ValueError, match=f"start {index} is said to have ended"):
            check_fit(SMALL, IMAGES, COMMANDS_OPD_NM, forged)


def test_without_a_search_a_fit_told_as_a_failure_would_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fit_check, "_require_no_minimum", lambda *_: None)
    for lie in LIES:
        forged = report(SMALL, IMAGES, COMMANDS_OPD_NM, list(map(lie, honest_runs())))
        check_fit(SMALL, IMAGES, COMMANDS_OPD_NM, forged)
