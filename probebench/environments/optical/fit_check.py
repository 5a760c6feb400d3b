"""Check cheaply that a saved fit belongs to its images: one evaluation, no search."""

from __future__ import annotations

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.estimator import (
    Commands,
    Frames,
    camera_fallback,
    observations_digest,
)
from probebench.environments.optical.likelihood import Likelihood
from probebench.environments.optical.propagation import one_blas_thread
from probebench.environments.optical.starts import (
    GRADIENT_TOLERANCE_PER_NM,
    TIE_LOG_LIKELIHOOD,
    starts_opd_nm,
)
from probebench.wire.optical_fit import Fit

# What another processor's arithmetic changes stays far below these.
RELATIVE_TOLERANCE = 1e-6
OBJECTIVE_TOLERANCE = 1e-6
GRADIENT_SLACK = 10.0


def check_fit(
    calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands, saved: Fit
) -> None:
    """Raise ValueError with a sentence where a saved fit does not fit its images."""
    if saved.observations_sha256 != observations_digest(frames_e, commands_opd_nm):
        raise ValueError("its observations_sha256 is of other images or commands")
    starts = [run.start_opd_nm for run in saved.starts]
    if not np.array_equal(starts, starts_opd_nm(calibration)):
        raise ValueError("its starts are not the disclosed ones")
    _check_fallback(calibration, frames_e, commands_opd_nm, saved)
    if saved.status == "converged":
        _check_estimate(calibration, frames_e, commands_opd_nm, saved)
    elif saved.suggested_command_opd_nm != saved.fallback.command_opd_nm:
        raise ValueError("a failed fit must suggest the command of its fallback")


def _check_fallback(
    calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands, saved: Fit
) -> None:
    expected = camera_fallback(calibration, frames_e, commands_opd_nm)
    ours, theirs = expected.scores, saved.fallback.scores
    same = len(ours) == len(theirs) and all(
        a is b or (a is not None and b is not None and np.isclose(a, b, rtol=RELATIVE_TOLERANCE))
        for a, b in zip(ours, theirs, strict=True)
    )
    if not same or saved.fallback.command_opd_nm != expected.command_opd_nm:
        raise ValueError("its fallback is not the sharpest measured command")


def _check_estimate(
    calibration: Calibration, frames_e: Frames, commands_opd_nm: Commands, saved: Fit
) -> None:
    index = saved.estimate_start_index
    if index is None or not 0 <= index < len(saved.starts):
        raise ValueError("its estimate comes from none of its starts")
    run = saved.starts[index]
    if run.status != "converged" or run.end_opd_nm != saved.estimate_opd_nm:
        raise ValueError("its estimate is not where its start ended")
    objectives = [r.objective for r in saved.starts if r.status == "converged"]
    least = min(value for value in objectives if value is not None)
    if saved.negative_log_likelihood is None or (
        saved.negative_log_likelihood > least + TIE_LOG_LIKELIHOOD
    ):
        raise ValueError("its estimate is not the least objective of its starts")
    estimate = np.array(saved.estimate_opd_nm)
    bound = calibration.command_bound_nm
    suggested = np.clip(estimate, -bound, bound)
    if not np.array_equal(suggested, saved.suggested_command_opd_nm):
        raise ValueError("its suggested command is not its estimate clipped to the command bounds")
    if saved.suggested_command_clipped != bool(np.any(suggested != estimate)):
        raise ValueError("it misstates whether the suggested command was clipped")
    with one_blas_thread():
        point = Likelihood(
            calibration, np.array(frames_e, float), np.array(commands_opd_nm, float)
        ).at(estimate)
    scale = max(1.0, abs(point.objective))
    if abs(point.objective - saved.negative_log_likelihood) > OBJECTIVE_TOLERANCE * scale:
        raise ValueError("its objective is not that of its estimate")
    if point.gradient_norm > GRADIENT_SLACK * GRADIENT_TOLERANCE_PER_NM:
        raise ValueError("the objective still slopes at its estimate")
    if not np.allclose(np.array(saved.covariance_nm2) @ point.fisher, np.eye(6), atol=1e-4, rtol=0):
        raise ValueError("its covariance is not the inverse of the Fisher matrix at its estimate")
