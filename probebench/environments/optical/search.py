"""One start of the estimator: scipy's trust-region search for a minimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.likelihood import Likelihood, LikelihoodPoint
from probebench.environments.optical.propagation import Reals
from probebench.environments.optical.starts import (
    COEFFICIENT_BOUND_NM,
    INITIAL_TRUST_RADIUS_NM,
    ITERATIONS_PER_START,
    JOINING_DISTANCE_NM,
    MAX_TRUST_RADIUS_NM,
    gradient_tolerance_per_nm,
    wavelength_scale,
)
from probebench.wire.optical_fit import StartDiagnostics, StartStatus

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

# Added to the diagonal of the solver's Hessian, of its trace: the Fisher matrix
# is never negative but for rounding, and the dogleg needs it to be positive.
RIDGE = 1e-6


@dataclass(frozen=True)
class Run:
    """One start's run: where it ended, or None where a number was not finite.

    objective, gradient_norm: at the end; a run that joined another has no
        gradient of its own.
    joined: the index of the earlier run whose minimum it came near to.
    """

    start_opd_nm: Reals
    iterations: int
    status: StartStatus
    end_opd_nm: Reals | None = None
    objective: float | None = None
    point: LikelihoodPoint | None = None
    joined: int | None = None

    def diagnostics(self) -> StartDiagnostics:
        """The run as the result reports it."""
        end, point = self.end_opd_nm, self.point
        return StartDiagnostics(
            start_opd_nm=self.start_opd_nm.tolist(),
            end_opd_nm=None if end is None else end.tolist(),
            objective=self.objective,
            gradient_norm_per_nm=None if point is None else point.gradient_norm,
            iterations=self.iterations,
            status=self.status,
            joined_start_index=self.joined,
        )


class _NotFiniteError(ArithmeticError):
    """The objective or a derivative overflowed."""


class _JoinedError(Exception):
    """The run came near to the minimum of an earlier one."""

    def __init__(self, end_opd_nm: Reals, iterations: int, index: int) -> None:
        super().__init__()
        self.end_opd_nm = end_opd_nm
        self.iterations = iterations
        self.index = index


def joined_run(end_opd_nm: Reals, runs: Sequence[Run], calibration: Calibration) -> int | None:
    """The first of the converged runs whose minimum is near, or None."""
    distance_nm = JOINING_DISTANCE_NM * wavelength_scale(calibration)
    for index, run in enumerate(runs):
        if run.status == "converged" and run.end_opd_nm is not None:
            step_nm = end_opd_nm - run.end_opd_nm
            if step_nm @ step_nm < distance_nm**2:
                return index
    return None


def run_from(
    likelihood: Likelihood, start_opd_nm: Vector, calibration: Calibration, earlier: list[Run]
) -> Run:
    """Minimise from one start, or until the run comes near to an earlier one's minimum."""
    try:
        with np.errstate(all="ignore"):
            result = _minimised(likelihood, start_opd_nm, calibration, earlier)
            point = likelihood.at(result.x)
    except _JoinedError as join:
        end, index = join.end_opd_nm, join.index
        objective = likelihood.objective(end)
        return Run(start_opd_nm, join.iterations, "joined", end, objective, joined=index)
    except (_NotFiniteError, np.linalg.LinAlgError, ValueError):
        # ValueError: scipy refuses a Hessian whose factors are not finite.
        return Run(start_opd_nm, 0, "not_finite")
    tolerance = gradient_tolerance_per_nm(calibration)
    status = end_status(result.x, point.gradient_norm, result.nit, tolerance)
    return Run(start_opd_nm, int(result.nit), status, result.x, point.objective, point)


def _minimised(
    likelihood: Likelihood, start_opd_nm: Vector, calibration: Calibration, earlier: list[Run]
) -> Any:
    # Over a second to import, and only a fit needs it.
    from scipy.optimize import minimize

    iterations = 0

    def objective(incident_opd_nm: Any, *_: Any, **__: Any) -> float:
        value = likelihood.objective(incident_opd_nm)
        if not math.isfinite(value):
            raise _NotFiniteError
        return value

    def gradient(incident_opd_nm: Any, *_: Any, **__: Any) -> Any:
        point = likelihood.at(incident_opd_nm)
        if not point.finite:
            raise _NotFiniteError
        return point.gradient

    def hessian(incident_opd_nm: Any, *_: Any, **__: Any) -> Any:
        fisher = likelihood.at(incident_opd_nm).fisher
        return fisher + RIDGE * np.trace(fisher) * np.eye(len(fisher))

    def end_where_joined(intermediate_result: Any) -> None:
        incident_opd_nm = intermediate_result.x
        nonlocal iterations
        iterations += 1
        index = joined_run(incident_opd_nm, earlier, calibration)
        if index is not None:
            # Not StopIteration: scipy would compute the derivatives here first.
            raise _JoinedError(incident_opd_nm, iterations, index)

    scale = wavelength_scale(calibration)
    # A run may begin where it would end.
    index = joined_run(start_opd_nm, earlier, calibration)
    if index is not None:
        raise _JoinedError(start_opd_nm, 0, index)
    options: Any = {
        "maxiter": ITERATIONS_PER_START,
        "gtol": gradient_tolerance_per_nm(calibration),
        "initial_trust_radius": INITIAL_TRUST_RADIUS_NM * scale,
        "max_trust_radius": MAX_TRUST_RADIUS_NM * scale,
    }
    return minimize(
        objective,
        start_opd_nm,
        method="dogleg",
        jac=gradient,
        hess=hessian,
        callback=end_where_joined,
        options=options,
    )


def end_status(
    end_opd_nm: Reals, gradient_norm_per_nm: float, iterations: int, tolerance_per_nm: float
) -> StartStatus:
    """How a run ended, from where and after how many iterations it did."""
    if np.max(np.abs(end_opd_nm)) > COEFFICIENT_BOUND_NM:
        return "outside_bound"
    if gradient_norm_per_nm < tolerance_per_nm:
        return "converged"
    return "iteration_limit" if iterations >= ITERATIONS_PER_START else "stalled"
