"""The supplied estimator: multistart maximum likelihood over all images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probebench.environments.optical.camera import Calibration, Frame
from probebench.environments.optical.likelihood import Likelihood, LikelihoodPoint
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.environments.optical.starts import (
    BASIN_LOG_LIKELIHOOD,
    CAMERA_SCORE,
    COEFFICIENT_BOUND_NM,
    INITIAL_TRUST_RADIUS_NM,
    ITERATIONS_PER_START,
    MAX_TRUST_RADIUS_NM,
    SAME_MINIMUM_SIGMA,
    TIE_LOG_LIKELIHOOD,
    gradient_tolerance_per_nm,
    starts_opd_nm,
    wavelength_scale,
)
from probebench.kernel.canonical import digest
from probebench.wire.optical_fit import Fallback, Fit, OtherBasin, StartDiagnostics, StartStatus

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
        runs = [_run(likelihood, start, calibration) for start in starts_opd_nm(calibration)]
        return report(calibration, frames_e, commands_opd_nm, runs)


# -- one start -----------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One start's run: where it ended, or None for both where a number was not finite."""

    start_opd_nm: Reals
    end_opd_nm: Reals | None
    point: LikelihoodPoint | None
    iterations: int
    status: StartStatus

    def diagnostics(self) -> StartDiagnostics:
        """The run as the result reports it."""
        end, point = self.end_opd_nm, self.point
        return StartDiagnostics(
            start_opd_nm=self.start_opd_nm.tolist(),
            end_opd_nm=None if end is None else end.tolist(),
            objective=None if point is None else point.objective,
            gradient_norm_per_nm=None if point is None else point.gradient_norm,
            iterations=self.iterations,
            status=self.status,
        )


class _NotFiniteError(ArithmeticError):
    """The objective or a derivative overflowed."""


def likelihood_of(
    calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands
) -> Likelihood:
    """The likelihood that a fit of these images maximises."""
    return Likelihood(calibration, np.array(frames_e, float), np.array(commands_opd_nm, float))


def _run(likelihood: Likelihood, start_opd_nm: Vector, calibration: Calibration) -> Run:
    # Over a second to import, and only a fit needs it.
    from scipy.optimize import minimize

    def at(incident_opd_nm: Any) -> LikelihoodPoint:
        point = likelihood.at(incident_opd_nm)
        if not point.finite:
            raise _NotFiniteError
        return point

    def objective(incident_opd_nm: Any, *_: Any, **__: Any) -> float:
        return at(incident_opd_nm).objective

    def gradient(incident_opd_nm: Any, *_: Any, **__: Any) -> Any:
        return at(incident_opd_nm).gradient

    def fisher(incident_opd_nm: Any, *_: Any, **__: Any) -> Any:
        return at(incident_opd_nm).fisher

    scale = wavelength_scale(calibration)
    tolerance = gradient_tolerance_per_nm(calibration)
    options: Any = {
        "maxiter": ITERATIONS_PER_START,
        "gtol": tolerance,
        "initial_trust_radius": INITIAL_TRUST_RADIUS_NM * scale,
        "max_trust_radius": MAX_TRUST_RADIUS_NM * scale,
    }
    try:
        with np.errstate(all="ignore"):
            result: Any = minimize(
                objective,
                start_opd_nm,
                method="trust-exact",
                jac=gradient,
                hess=fisher,
                options=options,
            )
            point = at(result.x)
    except (_NotFiniteError, np.linalg.LinAlgError, ValueError):
        # ValueError: scipy refuses a Hessian whose factors are not finite.
        return Run(start_opd_nm, None, None, 0, "not_finite")
    status = end_status(result.x, point.gradient_norm, result.nit, tolerance)
    return Run(start_opd_nm, result.x, point, int(result.nit), status)


def end_status(
    end_opd_nm: Reals, gradient_norm_per_nm: float, iterations: int, tolerance_per_nm: float
) -> StartStatus:
    """How a run ended, from where and after how many iterations it did."""
    if np.max(np.abs(end_opd_nm)) > COEFFICIENT_BOUND_NM:
        return "outside_bound"
    if gradient_norm_per_nm < tolerance_per_nm:
        return "converged"
    return "iteration_limit" if iterations >= ITERATIONS_PER_START else "stalled"


# -- all starts ------------------------------------------------------------------


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
    best, failure = _best(runs)
    if best is None:
        return Fit(
            **_NO_ESTIMATE,
            **common,
            failure=failure,
            suggested_command_opd_nm=fallback.command_opd_nm,
        )
    end_opd_nm, point = _end(runs[best])
    bound = calibration.command_bound_nm
    suggested = np.clip(end_opd_nm, -bound, bound)
    return Fit(
        status="converged",
        failure=None,
        estimate_opd_nm=end_opd_nm.tolist(),
        suggested_command_opd_nm=suggested.tolist(),
        suggested_command_clipped=bool(np.any(suggested != end_opd_nm)),
        covariance_nm2=np.linalg.inv(point.fisher).tolist(),
        negative_log_likelihood=point.objective,
        misfit_sigma=point.misfit_sigma,
        estimate_start_index=best,
        other_basins=_other_basins(runs, best),
        **common,
    )


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


def _end(run: Run) -> tuple[Reals, LikelihoodPoint]:
    if run.end_opd_nm is None or run.point is None:
        raise ValueError("a run that met a number which is not finite has no end")
    return run.end_opd_nm, run.point


def _best(runs: list[Run]) -> tuple[int | None, str]:
    """The start of the estimate: the first whose end ties with the least objective."""
    eligible = {index: _end(run)[1] for index, run in enumerate(runs) if run.status == "converged"}
    if not eligible:
        return None, "no start converged within its iterations and the coefficient bound"
    least = min(point.objective for point in eligible.values())
    best = next(i for i, p in eligible.items() if p.objective <= least + TIE_LOG_LIKELIHOOD)
    if not np.linalg.cond(eligible[best].fisher) < MAX_CONDITION:
        return None, "the Fisher matrix at the least objective is singular"
    return best, ""


def _other_basins(runs: list[Run], best: int) -> list[OtherBasin]:
    least_objective = _end(runs[best])[1].objective
    minima: list[tuple[Reals, LikelihoodPoint, list[int]]] = [(*_end(runs[best]), [])]
    for index, run in enumerate(runs):
        if run.status != "converged":
            continue
        end, point = _end(run)
        for minimum, there, indices in minima:
            if _sigmas(end - minimum, there) <= SAME_MINIMUM_SIGMA:
                indices.append(index)
                break
        else:
            minima.append((end, point, [index]))
    return [
        OtherBasin(
            opd_nm=minimum.tolist(),
            # Ties are taken in the order of the starts, so one may lie lower.
            log_likelihood_distance=max(0.0, distance),
            tie=abs(distance) <= TIE_LOG_LIKELIHOOD,
            start_indices=indices,
        )
        for minimum, there, indices in minima[1:]
        if (distance := there.objective - least_objective) <= BASIN_LOG_LIKELIHOOD
    ]


def _sigmas(step_nm: Reals, there: LikelihoodPoint) -> float:
    """Length of a step in standard deviations of the estimate there."""
    return float(np.sqrt(step_nm @ there.fisher @ step_nm))


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
