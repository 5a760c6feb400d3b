"""Ways to touch a saved fit, each with what its check must object to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Forgery = Callable[[dict[str, Any]], None]


def put(*path: Any, value: Any) -> Forgery:
    """Set what stands at a path; a function of the old value where it is one."""

    def forge(saved: dict[str, Any]) -> None:
        *way, last = path
        holder: Any = saved
        for step in way:
            holder = holder[step]
        holder[last] = value(holder[last]) if callable(value) else value

    return forge


def every(*forgeries: Forgery) -> Forgery:
    def forge(saved: dict[str, Any]) -> None:
        for one in forgeries:
            one(saved)

    return forge


def moved(vector: list[float]) -> list[float]:
    return [vector[0] + 1.0, *vector[1:]]


def chosen(saved: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = saved["starts"][saved["estimate_start_index"]]
    return run


def move_the_end_too(saved: dict[str, Any]) -> None:
    """A consistent lie: the estimate, the end that it came from and the suggestion."""
    for holder, key in (
        (saved, "estimate_opd_nm"),
        (saved, "suggested_command_opd_nm"),
        (chosen(saved), "end_opd_nm"),
    ):
        holder[key] = moved(holder[key])


def claim_a_failure(saved: dict[str, Any]) -> None:
    saved.update(status="numerical_failure", failure="no start converged")


def claim_a_failure_throughout(saved: dict[str, Any]) -> None:
    saved.update(
        status="numerical_failure",
        failure="no start converged within its iterations and the coefficient bound",
        estimate_opd_nm=None,
        covariance_nm2=None,
        negative_log_likelihood=None,
        misfit_sigma=None,
        estimate_start_index=None,
        suggested_command_opd_nm=saved["fallback"]["command_opd_nm"],
        other_basins=[],
    )


INVENTED_BASIN = {
    "opd_nm": [1.0] * 6,
    "log_likelihood_distance": 1.0,
    "tie": False,
    "start_indices": [3],
}

FORGERIES: dict[str, tuple[Forgery, str]] = {
    "digest": (put("observations_sha256", value="0" * 64), "other images or commands"),
    "a start": (put("starts", 3, "start_opd_nm", value=moved), "not the disclosed ones"),
    "a start left out": (put("starts", value=lambda runs: runs[:-1]), "not the disclosed ones"),
    "an end": (put("starts", 3, "end_opd_nm", value=moved), "objective of start 3"),
    "an objective": (
        put("starts", 3, "objective", value=lambda v: v + 0.01),
        "objective of start 3",
    ),
    "an objective left out": (put("starts", 3, "objective", value=None), "objective of start 3"),
    "a gradient": (
        put("starts", 0, "gradient_norm_per_nm", value=lambda v: v + 1e-4),
        "gradient norm of start 0",
    ),
    "a gradient left out": (
        put("starts", 0, "gradient_norm_per_nm", value=None),
        "gradient norm of start 0",
    ),
    "a gradient of a run that joined": (
        put("starts", 3, "gradient_norm_per_nm", value=1e-9),
        "status of start 3",
    ),
    "another minimum joined": (
        put("starts", 3, "joined_start_index", value=1),
        "start 3 misstates which earlier minimum",
    ),
    "a run that joined none": (
        put("starts", 3, "joined_start_index", value=None),
        "start 3 misstates which earlier minimum",
    ),
    "a run that claims to have joined": (
        every(
            put("starts", 0, "status", value="joined"),
            put("starts", 0, "gradient_norm_per_nm", value=None),
            put("starts", 0, "joined_start_index", value=1),
        ),
        "start 0 misstates which earlier minimum",
    ),
    "a run that joined said to have converged": (
        put("starts", 3, "status", value="converged"),
        "status of start 3",
    ),
    "the status of a run that converged": (
        put("starts", 0, "status", value="stalled"),
        "status of start 0",
    ),
    "a status": (put("starts", 3, "status", value="stalled"), "status of start 3"),
    "a status without an end": (
        put("starts", 3, "status", value="not_finite"),
        "status of start 3",
    ),
    "an end left out": (put("starts", 3, "end_opd_nm", value=None), "start 3 has no end"),
    "iterations": (put("starts", 3, "iterations", value=31), "start 3 has more iterations"),
    "estimate": (put("estimate_opd_nm", value=moved), "not where its start ended"),
    "estimate and suggestion": (
        every(put("estimate_opd_nm", value=moved), put("suggested_command_opd_nm", value=moved)),
        "not where its start ended",
    ),
    "estimate, suggestion and end": (move_the_end_too, "objective of start"),
    "start of the estimate": (
        put("estimate_start_index", value=lambda index: (index + 1) % 9),
        "not of the start with the least objective",
    ),
    "no start of the estimate": (
        put("estimate_start_index", value=None),
        "not of the start with the least objective",
    ),
    "objective": (
        put("negative_log_likelihood", value=lambda v: v + 1e-6),
        "objective is not that of its estimate",
    ),
    "misfit": (put("misfit_sigma", value=lambda v: v + 1e-3), "its misfit"),
    "covariance": (
        put("covariance_nm2", value=lambda c: (1.001 * np.array(c)).tolist()),
        "its covariance",
    ),
    "covariance left out": (put("covariance_nm2", value=None), "its covariance"),
    "suggestion": (put("suggested_command_opd_nm", value=moved), "its suggested command"),
    "clipped": (put("suggested_command_clipped", value=True), "was clipped"),
    "a basin invented": (put("other_basins", value=[INVENTED_BASIN]), "other basins"),
    "failure": (put("failure", value="no start converged"), "its failure"),
    "status": (claim_a_failure, "its status"),
    "status and all that goes with it": (claim_a_failure_throughout, "its status"),
    "fallback score": (put("fallback", "scores", 0, value=lambda v: v * 1.001), "its fallback"),
    "fallback index": (put("fallback", "exposure_index", value=lambda v: 1 - v), "its fallback"),
    "fallback command": (put("fallback", "command_opd_nm", value=moved), "its fallback"),
    "fallback's name": (put("fallback", "score", value="peak"), "its fallback"),
    "fallback cut": (put("fallback", "scores", value=lambda scores: scores[:1]), "its fallback"),
}
