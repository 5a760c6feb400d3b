"""Check cheaply that a saved fit belongs to its images: an evaluation a start.

Where each run ended is taken from the saved fit; the likelihood there, and all
that the fit reports of the runs together, are made again.  A run that is said
to have found no minimum is made again itself: any point would pass for the end
of such a run, so that a fit that converged could be told as a failure.  One
that ran out of iterations is so only where the whole fit failed: beside runs
that converged it is common, and would take longer than all other checks.
What only a search could show of the rest is not checked: that a run from its
start leads to its end, and how many iterations it took.
"""

from __future__ import annotations

import math

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.estimator import (
    Commands,
    Frames,
    likelihood_of,
    observations_digest,
    report,
)
from probebench.environments.optical.likelihood import Likelihood, LikelihoodPoint
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.environments.optical.search import Run, end_status, joined_run, run_from
from probebench.environments.optical.starts import (
    ITERATIONS_PER_START,
    gradient_tolerance_per_nm,
    starts_opd_nm,
)
from probebench.wire.optical_fit import Fallback, Fit, StartDiagnostics

# What another processor's arithmetic changes stays far below these.
RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9
GRADIENT_RELATIVE_TOLERANCE = 1e-5  # derivatives have seven digits
GRADIENT_TOLERANCE = 0.1  # of the gradient norm at which a run has converged
COVARIANCE_TOLERANCE = 1e-4

# How a run ends that found a minimum.
FOUND = {"converged": "converges", "joined": "joins an earlier minimum"}
# Runs that are made again, by how they and the fit are said to have ended.
_RARE = {"not_finite", "stalled", "outside_bound"}
MADE_AGAIN = {"converged": _RARE, "numerical_failure": _RARE | {"iteration_limit"}}

# Fields of a fit that follow from the saved ends and objectives alone, hence
# are equal to the last bit, and how to say that one is not.
EXACT = {
    "status": "its status is not that of its starts",
    "failure": "its failure is not that of its starts",
    "estimate_start_index": "its estimate is not of the start with the least objective",
    "estimate_opd_nm": "its estimate is not where its start ended",
    "negative_log_likelihood": "its objective is not that of its estimate",
    "suggested_command_opd_nm": "its suggested command is neither its estimate clipped to the "
    "command bounds nor, after a failure, that of the fallback",
    "suggested_command_clipped": "it misstates whether the suggested command was clipped",
    "other_basins": "its other basins are not those of its starts",
}


def check_fit(
    calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands, saved: Fit
) -> None:
    """Raise ValueError with a sentence where a saved fit does not fit its images."""
    if saved.observations_sha256 != observations_digest(frames_e, commands_opd_nm):
        raise ValueError("its observations_sha256 is of other images or commands")
    starts = [run.start_opd_nm for run in saved.starts]
    if not np.array_equal(starts, starts_opd_nm(calibration)):
        raise ValueError("its starts are not the disclosed ones")
    with one_blas_thread(), np.errstate(all="ignore"):
        likelihood = likelihood_of(calibration, frames_e, commands_opd_nm)
        runs: list[Run] = []
        for index, run in enumerate(saved.starts):
            runs.append(_run(likelihood, index, run, calibration, runs))
            if run.status in MADE_AGAIN[saved.status]:
                _require_no_minimum(likelihood, index, runs[-1], calibration, runs[:-1])
        expected = report(calibration, frames_e, commands_opd_nm, runs)
    _compare(expected, saved)


def _require_no_minimum(
    likelihood: Likelihood, index: int, saved: Run, calibration: Calibration, earlier: list[Run]
) -> None:
    """Make a run again that is said to have come to nothing."""
    again = run_from(likelihood, starts_opd_nm(calibration)[index], calibration, earlier)
    # Under another processor a run may come to nothing in another way.
    if again.status in FOUND:
        raise ValueError(
            f"start {index} is said to have ended as {saved.status}, and {FOUND[again.status]} "
            "when it is run again"
        )


def _run(
    likelihood: Likelihood,
    index: int,
    saved: StartDiagnostics,
    calibration: Calibration,
    earlier: list[Run],
) -> Run:
    """Make a run again from its saved end.  Raises ValueError where the end belies it."""
    start, status = np.array(saved.start_opd_nm), saved.status
    if saved.end_opd_nm is None:
        run = Run(start, 0, "not_finite")
        if saved != run.diagnostics():
            raise ValueError(f"start {index} has no end, but figures or a status that need one")
        return run
    end, objective = np.array(saved.end_opd_nm), saved.objective
    if objective is None or not _close(likelihood.objective(end), objective):
        raise ValueError(f"the objective of start {index} is not that of its end")
    if saved.iterations > ITERATIONS_PER_START:
        raise ValueError(f"start {index} has more iterations than the allowance")
    if saved.joined_start_index != joined_run(end, earlier, calibration):
        raise ValueError(f"start {index} misstates which earlier minimum it ended near")
    # The saved objective decides, or its last bits could make another choice.
    if saved.joined_start_index is not None:
        run = Run(
            start, saved.iterations, "joined", end, objective, joined=saved.joined_start_index
        )
    else:
        point = likelihood.at(end)
        _check_end(point, end, index, saved, calibration)
        run = Run(start, saved.iterations, status, end, objective, point)
    if (status, saved.gradient_norm_per_nm is None) != (run.status, run.point is None):
        raise ValueError(f"the status of start {index} is not that of its end")
    return run


def _check_end(
    point: LikelihoodPoint,
    end: Reals,
    index: int,
    saved: StartDiagnostics,
    calibration: Calibration,
) -> None:
    gradient_norm = saved.gradient_norm_per_nm
    tolerance = gradient_tolerance_per_nm(calibration)
    if gradient_norm is None or not math.isclose(
        point.gradient_norm,
        gradient_norm,
        rel_tol=GRADIENT_RELATIVE_TOLERANCE,
        abs_tol=GRADIENT_TOLERANCE * tolerance,
    ):
        raise ValueError(f"the gradient norm of start {index} is not that of its end")
    if saved.status != end_status(end, gradient_norm, saved.iterations, tolerance):
        raise ValueError(f"the status of start {index} is not that of its end")


def _compare(expected: Fit, saved: Fit) -> None:
    if not _same_fallback(expected.fallback, saved.fallback):
        raise ValueError("its fallback is not the sharpest measured command")
    for field, sentence in EXACT.items():
        if getattr(saved, field) != getattr(expected, field):
            raise ValueError(sentence)
    if not _close(expected.misfit_sigma, saved.misfit_sigma):
        raise ValueError("its misfit is not that of its estimate")
    if not _inverse_of_same(expected.covariance_nm2, saved.covariance_nm2):
        raise ValueError("its covariance is not the inverse of the Fisher matrix at its estimate")


def _same_fallback(expected: Fallback, saved: Fallback) -> bool:
    return (
        (saved.score, saved.exposure_index, saved.command_opd_nm)
        == (expected.score, expected.exposure_index, expected.command_opd_nm)
        and len(saved.scores) == len(expected.scores)
        and all(map(_close, expected.scores, saved.scores))
    )


def _close(expected: float | None, saved: float | None) -> bool:
    if expected is None or saved is None:
        return expected is saved
    return math.isclose(expected, saved, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)


def _inverse_of_same(expected: list[list[float]] | None, saved: list[list[float]] | None) -> bool:
    if expected is None or saved is None:
        return expected is saved
    fisher = np.linalg.inv(expected)
    return np.allclose(np.array(saved) @ fisher, np.eye(6), atol=COVARIANCE_TOLERANCE, rtol=0)
