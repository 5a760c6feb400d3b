"""The supplied estimator: multistart maximum likelihood over all images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from probebench.environments.optical.camera import Calibration, Frame
from probebench.environments.optical.likelihood import Likelihood
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.environments.optical.search import Run, run_from
from probebench.environments.optical.starts import (
    BASIN_LOG_LIKELIHOOD,
    CAMERA_SCORE,
    TIE_LOG_LIKELIHOOD,
    starts_opd_nm,
)
from probebench.kernel.canonical import digest
from probebench.wire.optical_fit import Fallback, Fit, OtherBasin

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Frames = Sequence[Frame]
Commands = Sequence[Sequence[float]]

# A Fisher matrix of a larger condition number says nothing of some direction.
MAX_CONDITION = 1e12


def observations_digest(frames_e: Frames, commands_opd_nm: Commands) -> str:
    """Digest that binds a fit to the images and commands it was made from."""
    return digest(
        {
            "frames_e": [frame_e.tolist() for frame_e in frames_e],
            "commands_opd_nm": [[float(value) for value in command] for command in commands_opd_nm],
        }
    )


def fit(calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands) -> Fit:
    """Estimate the incident OPD from all images.

    frames_e: k images, (rows, columns) electrons each.
    commands_opd_nm: the (6,) command of each, nm OPD.
    Never raises for what the numbers are: where no start converges the result
    is a numerical failure, and its suggestion the sharpest measured command.
    """
    with one_blas_thread():
        likelihood = likelihood_of(calibration, frames_e, commands_opd_nm)
        runs: list[Run] = []
        for start in starts_opd_nm(calibration):
            runs.append(run_from(likelihood, start, calibration, runs))
        return report(calibration, frames_e, commands_opd_nm, runs)


def likelihood_of(
    calibration: Calibration,
    frames_e: Frames,
    commands_opd_nm: Commands,
    dtype: type[np.floating] = np.float32,
) -> Likelihood:
    """The likelihood that a fit of these images maximises."""
    frames, commands = np.array(frames_e, float), np.array(commands_opd_nm, float)
    return Likelihood(calibration, frames, commands, dtype)


def report(
    calibration: Calibration,
    frames_e: Frames,
    commands_opd_nm: Commands,
    runs: list[Run],
) -> Fit:
    """The result of all runs; it depends on nothing else."""
    fallback = camera_fallback(calibration, frames_e, commands_opd_nm)
    common: dict[str, Any] = {
        "observations_sha256": observations_digest(frames_e, commands_opd_nm),
        "starts": [run.diagnostics() for run in runs],
        "fallback": fallback,
    }
    best = _best(runs)
    if best is None:
        failure = "no start converged within its iterations and the coefficient bound"
        return _failed(failure, common)
    end_opd_nm = _end(runs[best])
    exact = likelihood_of(calibration, frames_e, commands_opd_nm, np.float64)
    fisher = exact.at(end_opd_nm).fisher
    if not np.linalg.cond(fisher) < MAX_CONDITION:
        return _failed("the Fisher matrix at the least objective is singular", common)
    bound = calibration.command_bound_nm
    suggested = np.clip(end_opd_nm, -bound, bound)
    return Fit(
        status="converged",
        failure=None,
        estimate_opd_nm=end_opd_nm.tolist(),
        suggested_command_opd_nm=suggested.tolist(),
        suggested_command_clipped=bool(np.any(suggested != end_opd_nm)),
        covariance_nm2=np.linalg.inv(fisher).tolist(),
        negative_log_likelihood=_objective(runs[best]),
        misfit_sigma=exact.misfit_sigma(end_opd_nm),
        estimate_start_index=best,
        other_basins=_other_basins(runs, best),
        **common,
    )


def _failed(failure: str, common: dict[str, Any]) -> Fit:
    suggested = common["fallback"].command_opd_nm
    return Fit(**_NO_ESTIMATE, **common, failure=failure, suggested_command_opd_nm=suggested)


_NO_ESTIMATE: dict[str, Any] = {
    "status": "numerical_failure",
    "estimate_opd_nm": None,
    "suggested_command_clipped": False,
    "covariance_nm2": None,
    "negative_log_likelihood": None,
    "misfit_sigma": None,
    "estimate_start_index": None,
    "other_basins": [],
}


def _end(run: Run) -> Reals:
    if run.end_opd_nm is None:
        raise ValueError("a run that met a number which is not finite has no end")
    return run.end_opd_nm


def _objective(run: Run) -> float:
    if run.objective is None:
        raise ValueError("a run that met a number which is not finite has no objective")
    return run.objective


def _best(runs: list[Run]) -> int | None:
    """The start of the estimate: the first whose end ties with the least objective."""
    converged = [(index, run) for index, run in enumerate(runs) if run.status == "converged"]
    if not converged:
        return None
    least = min(_objective(run) for _, run in converged)
    return next(i for i, run in converged if _objective(run) <= least + TIE_LOG_LIKELIHOOD)


def _other_basins(runs: list[Run], best: int) -> list[OtherBasin]:
    # Every run that converged found another minimum: those that came near to
    # one that was known have joined it.
    return [
        OtherBasin(
            opd_nm=_end(run).tolist(),
            # Ties are taken in the order of the starts, so one may lie lower.
            log_likelihood_distance=max(0.0, distance),
            tie=abs(distance) <= TIE_LOG_LIKELIHOOD,
            start_indices=[i for i, other in enumerate(runs) if index in (i, other.joined)],
        )
        for index, run in enumerate(runs)
        if run.status == "converged"
        and index != best
        and (distance := _objective(run) - _objective(runs[best])) <= BASIN_LOG_LIKELIHOOD
    ]


def camera_fallback(
    calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands
) -> Fallback:
    """The acquired command with the sharpest image, by measurement alone.

    Score: sum of (e^2 - e - s^2) / photons^2; its expectation is the sum of
    squares of the expected image over photons^2, as E[e^2] = m^2 + m + s^2.
    """
    photons, read_variance = calibration.photons_per_exposure, calibration.read_noise_e**2
    with np.errstate(all="ignore"):
        scores = [float(np.sum(e**2 - e - read_variance) / photons**2) for e in frames_e]
    finite = [score if np.isfinite(score) else None for score in scores]
    best = max(range(len(finite)), key=lambda i: (-np.inf if finite[i] is None else finite[i], -i))
    return Fallback(
        score=CAMERA_SCORE,
        scores=finite,
        exposure_index=best,
        command_opd_nm=[float(value) for value in commands_opd_nm[best]],
    )
