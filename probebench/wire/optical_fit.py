"""What the supplied estimator of the optical environment reports, as plain JSON.

Every quantity is computed from acquired images and their commands alone.
Vectors hold six coefficients in nm RMS of OPD, in the order of the modes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from probebench.kernel.schema import ClosedModel

Coefficients = Annotated[list[float], Field(min_length=6, max_length=6)]
Covariance = Annotated[list[Coefficients], Field(min_length=6, max_length=6)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

StartStatus = Literal[
    "converged", "joined", "iteration_limit", "stalled", "outside_bound", "not_finite"
]


class EstimatorDisclosure(ClosedModel):
    """What the supplied estimator does, before it is called."""

    method: str
    solver: str
    starts_opd_nm: list[Coefficients]
    coefficient_bound_nm: float = Field(
        description="A run that ends with a larger coefficient is not eligible."
    )
    iterations_per_start: int
    gradient_tolerance_per_nm: float
    initial_trust_radius_nm: float
    max_trust_radius_nm: float
    joining_distance_nm: float = Field(
        description="A run that comes this near to a minimum that an earlier run has found ends "
        "there, as the minimum is the same one."
    )
    other_basins_within_log_likelihood: float
    tie_within_log_likelihood: float
    needs: str
    camera_score: str
    camera_score_formula: str


class StartDiagnostics(ClosedModel):
    """One run of the optimiser from one disclosed start."""

    start_opd_nm: Coefficients
    end_opd_nm: Coefficients | None = Field(
        description="Where the run ended, or null when it met a number that is not finite."
    )
    objective: float | None = Field(
        description="Negative log-likelihood at the end, on the scale of negative_log_likelihood."
    )
    gradient_norm_per_nm: float | None = Field(
        description="Euclidean norm of the objective's gradient at the end; null also for a run "
        "that joined another."
    )
    iterations: int = Field(ge=0, description="Trust-region steps tried.")
    status: StartStatus = Field(
        description="converged: the gradient norm is below the tolerance; joined: the run came "
        "near to the minimum of the start joined_start_index; iteration_limit: the allowance ran "
        "out; stalled: no step promised an improvement; outside_bound: a coefficient ended beyond "
        "the bound; not_finite: the objective overflowed.  Only converged runs are eligible for "
        "the estimate."
    )
    joined_start_index: int | None = Field(
        description="The earlier start whose minimum the run came near to; null unless joined."
    )


class OtherBasin(ClosedModel):
    """Another minimum that the images exclude weakly or not at all."""

    opd_nm: Coefficients
    log_likelihood_distance: float = Field(
        ge=0, description="Its objective minus the least objective of all eligible runs."
    )
    tie: bool = Field(
        description="Whether the images do not distinguish it from the least objective; which of "
        "the tied minima is the estimate is then decided by the order of the starts alone."
    )
    start_indices: list[int] = Field(description="The starts that led there.")


class Fallback(ClosedModel):
    """The acquired command whose image is the sharpest; a measurement, not a fit."""

    score: str = Field(description="Name of the camera score; the disclosure gives its formula.")
    scores: list[float | None] = Field(
        description="The score of each exposure, in order; null where it overflows."
    )
    exposure_index: int = Field(ge=0, description="The exposure with the highest score.")
    command_opd_nm: Coefficients = Field(description="The command of that exposure.")


class Fit(ClosedModel):
    """A maximum-likelihood fit to all acquired images.

    Convergence does not establish that the estimate is right.
    """

    status: Literal["converged", "numerical_failure"]
    failure: str | None = Field(description="Why there is no estimate; null when converged.")
    observations_sha256: Digest = Field(
        description="Digest of the canonical JSON of the images and commands that were fitted."
    )
    estimate_opd_nm: Coefficients | None = Field(description="The incident OPD.")
    suggested_command_opd_nm: Coefficients = Field(
        description="The estimate clipped to the command bounds; after a numerical failure the "
        "fallback's command."
    )
    suggested_command_clipped: bool = Field(
        description="Whether a coefficient of the estimate lies beyond the command bound."
    )
    covariance_nm2: Covariance | None = Field(
        description="Inverse of the expected Fisher matrix at the estimate."
    )
    negative_log_likelihood: float | None = Field(
        description="At the estimate, less its value for a model that equals the images."
    )
    misfit_sigma: float | None = Field(
        description="Pearson's chi-square at the estimate: standard deviations above its mean."
    )
    estimate_start_index: int | None = Field(description="The start that led to the estimate.")
    starts: list[StartDiagnostics]
    other_basins: list[OtherBasin]
    fallback: Fallback
