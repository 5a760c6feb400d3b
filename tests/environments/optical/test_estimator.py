"""The supplied estimator: what it finds, and how it says that it found nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy import stats

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.estimator import fit
from probebench.environments.optical.likelihood import Likelihood
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.environments.optical.starts import disclosure, starts_opd_nm
from probebench.wire.optical_fit import Fit
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    DEVELOPMENT,
    INCIDENT_OPD_NM,
    SMALL,
    expected_frames,
    frames,
    wavefront,
)

TRIALS = 60
BRIGHT = replace(DEVELOPMENT, photons_per_exposure=10**8)


def fitted(incident_opd_nm: Any, camera: Calibration = SMALL, seed: int = 1) -> Fit:
    return fit(camera, frames(camera, incident_opd_nm, COMMANDS_OPD_NM, seed), COMMANDS_OPD_NM)


def covariance(result: Fit) -> Reals:
    return np.array(result.covariance_nm2, dtype=np.float64)


@pytest.fixture(scope="module")
def found() -> Fit:
    return fitted(INCIDENT_OPD_NM)


@pytest.mark.parametrize("seed", range(4))
def test_images_without_noise_give_the_truth_to_a_millionth_of_a_nanometre(seed: int) -> None:
    truth = wavefront(seed, 60.0 + 30 * seed)
    result = fit(BRIGHT, expected_frames(BRIGHT, truth, COMMANDS_OPD_NM), COMMANDS_OPD_NM)
    assert result.status == "converged"
    assert result.estimate_opd_nm == pytest.approx(truth, abs=1e-6)
    assert result.other_basins == []


@pytest.mark.parametrize("photons", [300, 30_000, 10**6, 10**9])
def test_the_error_without_noise_is_what_the_gradient_tolerance_leaves(photons: int) -> None:
    camera = replace(SMALL, photons_per_exposure=photons)
    images = expected_frames(camera, INCIDENT_OPD_NM, COMMANDS_OPD_NM)
    result = fit(camera, images, COMMANDS_OPD_NM)
    variances = np.linalg.eigvalsh(covariance(result))
    error_nm = np.linalg.norm(np.array(result.estimate_opd_nm) - INCIDENT_OPD_NM)
    assert error_nm < 1.1 * disclosure(camera).gradient_tolerance_per_nm * variances.max()
    assert error_nm < 1e-3 * np.sqrt(variances.min())


def test_the_gradient_tolerance_follows_the_root_of_the_information() -> None:
    def tolerance(camera: Calibration) -> float:
        return disclosure(camera).gradient_tolerance_per_nm

    bright = replace(SMALL, photons_per_exposure=10**7)
    hundredfold = replace(SMALL, photons_per_exposure=10**9)
    assert tolerance(hundredfold) / tolerance(bright) == pytest.approx(10, rel=0.02)
    assert tolerance(replace(SMALL, read_noise_e=30.0)) < 0.7 * tolerance(SMALL)
    # The same wavefront in waves at twice the wavelength has half the slope per nm.
    doubled = tolerance(replace(SMALL, wavelength_nm=1700.0))
    assert doubled == pytest.approx(tolerance(SMALL) / 2, rel=0.01)


@pytest.fixture(scope="module")
def trials() -> list[tuple[Any, Fit]]:
    """Errors in nm and fits of wavefronts of 60 to 150 nm."""
    truths = [wavefront(seed, 60 + 90 * seed / TRIALS) for seed in range(TRIALS)]
    fits = [fitted(truth, seed=seed) for seed, truth in enumerate(truths)]
    return [
        (np.array(result.estimate_opd_nm) - truth, result)
        for truth, result in zip(truths, fits, strict=True)
    ]


def test_errors_scatter_as_the_covariance_predicts(trials: list[tuple[Any, Fit]]) -> None:
    normalised = [e @ np.linalg.solve(covariance(f), e) for e, f in trials]
    assert stats.kstest(normalised, stats.chi2(6).cdf).pvalue > 1e-3
    low, high = stats.chi2(6 * TRIALS).ppf([1e-3, 1 - 1e-3])
    assert low < sum(normalised) < high
    # Errors a fifth larger, or a covariance a third smaller, would be noticed.
    assert not low < sum(normalised) * 1.2**2 < high


def test_errors_have_no_bias(trials: list[tuple[Any, Fit]]) -> None:
    whitened = [np.linalg.solve(np.linalg.cholesky(covariance(f)), e) for e, f in trials]
    assert (np.abs(np.mean(whitened, axis=0)) < 4 / np.sqrt(TRIALS)).all()


def test_the_misfit_of_a_good_fit_is_near_zero(trials: list[tuple[Any, Fit]]) -> None:
    misfits = np.array([f.misfit_sigma for _, f in trials])
    # Six fitted coefficients take up a little.
    assert abs(misfits.mean()) < 0.2 + 4 / np.sqrt(TRIALS)
    assert misfits.std() == pytest.approx(1, abs=4 / np.sqrt(2 * TRIALS))


def test_images_of_another_instrument_are_a_misfit() -> None:
    other = replace(SMALL, photons_per_exposure=45_000)
    images = frames(other, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 1)
    misfit = fit(SMALL, images, COMMANDS_OPD_NM).misfit_sigma
    assert misfit is not None
    assert misfit > 20


def test_every_start_reports_where_and_how_it_ended(found: Fit) -> None:
    assert [run.start_opd_nm for run in found.starts] == starts_opd_nm(SMALL).tolist()
    likelihood = Likelihood(
        SMALL,
        np.array(frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 1)),
        np.array(COMMANDS_OPD_NM),
    )
    assert {run.status for run in found.starts} == {"converged", "joined"}
    for run in found.starts:
        with one_blas_thread():
            point = likelihood.at(np.array(run.end_opd_nm))
        assert run.objective == pytest.approx(point.objective, rel=1e-12)
        if run.status == "converged":
            assert run.gradient_norm_per_nm == pytest.approx(point.gradient_norm, abs=1e-9)
        assert 0 < run.iterations <= 30


def test_a_run_that_comes_near_to_an_earlier_minimum_joins_it(found: Fit) -> None:
    distance_nm = disclosure(SMALL).joining_distance_nm
    for index, run in enumerate(found.starts):
        end = np.array(run.end_opd_nm)
        near = [
            i
            for i, earlier in enumerate(found.starts[:index])
            if earlier.status == "converged"
            and np.linalg.norm(end - np.array(earlier.end_opd_nm)) < distance_nm
        ]
        assert (run.status == "joined") == bool(near)
        assert run.joined_start_index == (near[0] if near else None)
        assert (run.gradient_norm_per_nm is None) == bool(near)


@pytest.mark.parametrize("photons", [300, 30_000])
def test_a_run_that_joined_would_have_ended_in_the_minimum_that_it_joined(
    photons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    camera = replace(SMALL, photons_per_exposure=photons)
    truths = [wavefront(seed, 60 + 10 * seed) for seed in range(12)]
    joining = [fitted(truth, camera, seed) for seed, truth in enumerate(truths)]
    search = "probebench.environments.optical.search"
    monkeypatch.setattr(f"{search}.JOINING_DISTANCE_NM", 0.0)
    # A run may join in its last iterations.
    monkeypatch.setattr(f"{search}.ITERATIONS_PER_START", 60)
    alone = [fitted(truth, camera, seed) for seed, truth in enumerate(truths)]
    joined = 0
    for short, whole in zip(joining, alone, strict=True):
        sigma = np.sqrt(np.diag(covariance(whole)))
        step = np.array(short.estimate_opd_nm) - np.array(whole.estimate_opd_nm)
        assert (np.abs(step) < 0.01 * sigma).all()
        for run, other in zip(short.starts, whole.starts, strict=True):
            if run.joined_start_index is None:
                continue
            joined += 1
            minimum = np.array(short.starts[run.joined_start_index].end_opd_nm)
            assert other.status == "converged"
            assert (np.abs(np.array(other.end_opd_nm) - minimum) < 0.05 * sigma).all()
    assert joined > 60


def test_the_estimate_is_the_end_of_the_least_objective(found: Fit) -> None:
    assert found.estimate_start_index is not None
    chosen = found.starts[found.estimate_start_index]
    assert found.estimate_opd_nm == chosen.end_opd_nm
    assert found.negative_log_likelihood == chosen.objective
    objectives = [run.objective for run in found.starts if run.objective is not None]
    assert chosen.objective is not None
    assert chosen.objective <= min(objectives) + disclosure(SMALL).tie_within_log_likelihood


def test_the_same_images_give_the_same_bytes(found: Fit) -> None:
    assert fitted(INCIDENT_OPD_NM).model_dump_json() == found.model_dump_json()


def test_the_digest_binds_images_and_commands(found: Fit) -> None:
    images = frames(SMALL, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 1)
    bound = {"commands_opd_nm": COMMANDS_OPD_NM, "frames_e": [e.tolist() for e in images]}
    written = json.dumps(bound, separators=(",", ":"), sort_keys=True) + "\n"
    assert found.observations_sha256 == hashlib.sha256(written.encode()).hexdigest()


# -- what is disclosed is what is done -----------------------------------------------


def test_scipy_is_called_once_a_start_with_what_is_disclosed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []
    minimize = scipy.optimize.minimize

    def recorded(objective: Any, start: Any, **keywords: Any) -> Any:
        calls.append((start.tolist(), keywords))
        return minimize(objective, start, **keywords)

    monkeypatch.setattr(scipy.optimize, "minimize", recorded)
    camera = replace(SMALL, wavelength_nm=1700.0)
    fitted(2 * INCIDENT_OPD_NM, camera)
    told = disclosure(camera)
    assert [start for start, _ in calls] == told.starts_opd_nm
    for _, keywords in calls:
        assert f"minimize(method='{keywords['method']}')" in told.solver
        assert keywords["options"] == {
            "maxiter": told.iterations_per_start,
            "gtol": told.gradient_tolerance_per_nm,
            "initial_trust_radius": told.initial_trust_radius_nm,
            "max_trust_radius": told.max_trust_radius_nm,
        }


def test_starts_are_zero_and_one_offset_each_and_scale_with_the_wavelength() -> None:
    expected = np.zeros((9, 6))
    offsets = [(0, 100), (0, -100), (1, 100), (1, -100), (2, 100), (2, -100), (3, 100), (4, 100)]
    for row, (mode, offset_nm) in enumerate(offsets, start=1):
        expected[row, mode] = offset_nm
    assert np.array_equal(starts_opd_nm(SMALL), expected)
    doubled = replace(SMALL, wavelength_nm=1700.0)
    assert np.array_equal(starts_opd_nm(doubled), 2 * expected)
    assert disclosure(doubled).initial_trust_radius_nm == 2 * 100.0


def test_the_same_problem_at_twice_the_wavelength_has_twice_the_estimate() -> None:
    doubled = replace(SMALL, wavelength_nm=1700.0)
    commands = (2 * np.array(COMMANDS_OPD_NM)).tolist()
    result = fit(doubled, frames(doubled, 2 * INCIDENT_OPD_NM, commands, 1), commands)
    assert np.array(result.estimate_opd_nm) / 2 == pytest.approx(
        np.array(fitted(INCIDENT_OPD_NM).estimate_opd_nm), abs=1e-4
    )


def test_a_run_that_ends_beyond_the_bound_is_not_eligible() -> None:
    result = fitted(np.array([600.0, -30, 20, 40, -25, 10]))
    for run in result.starts:
        ended = np.abs(np.array(run.end_opd_nm)).max()
        assert (run.status == "outside_bound") == (ended > disclosure(SMALL).coefficient_bound_nm)
    assert any(run.status == "outside_bound" for run in result.starts)
    assert result.status == "numerical_failure"
    assert result.suggested_command_opd_nm == result.fallback.command_opd_nm


def test_a_run_without_enough_iterations_is_not_eligible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probebench.environments.optical.search.ITERATIONS_PER_START", 2)
    result = fitted(INCIDENT_OPD_NM)
    assert {run.status for run in result.starts} == {"iteration_limit"}
    assert {run.iterations for run in result.starts} == {2}
    assert result.status == "numerical_failure"
    assert result.failure is not None
    assert "no start converged" in result.failure
