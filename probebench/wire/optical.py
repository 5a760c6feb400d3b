"""Protocol ``probebench.agent.v1``: every message of the optical environment.

These models are the one description of the wire: the driver builds its
messages from them, the JSON Schemas are generated from them, and client
authors may use them.  Arrays are row-major; row 0 is the bottom image row.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from probebench.kernel.schema import ClosedModel
from probebench.wire.optical_fit import EstimatorDisclosure, Fit

PROTOCOL = "probebench.agent.v1"
MODES = 6

Vector = Annotated[list[float], Field(min_length=MODES, max_length=MODES)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RequestId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Track = Literal["tool_assisted", "direct_action"]
ActionName = Literal["expose", "estimate", "submit"]
RejectionCode = Literal[
    "empty_line",
    "byte_order_mark",
    "invalid_utf8",
    "too_large",
    "too_deep",
    "not_json",
    "duplicate_key",
    "nonfinite_number",
    "number_too_long",
    "lone_surrogate",
    "not_an_object",
    "missing_field",
    "unknown_field",
    "unknown_action",
    "wrong_type",
    "wrong_length",
    "out_of_bounds",
    "wrong_protocol",
    "stale_request_id",
    "unknown_request_id",
    "exposure_budget",
    "estimate_budget",
    "estimator_precondition",
    "not_in_track",
]

# -- actions, from the client ------------------------------------------------


class ExposeAction(ClosedModel):
    """Apply an absolute command and acquire one image; costs one exposure."""

    protocol: Literal["probebench.agent.v1"]
    request_id: RequestId
    action: Literal["expose"]
    command_opd_nm: Vector = Field(
        description="Absolute correction, nm OPD, in the order of the modes."
    )


class EstimateAction(ClosedModel):
    """Fit the incident wavefront to all acquired images; costs one estimate."""

    protocol: Literal["probebench.agent.v1"]
    request_id: RequestId
    action: Literal["estimate"]


class SubmitAction(ClosedModel):
    """End the session with a final command; acquires nothing."""

    protocol: Literal["probebench.agent.v1"]
    request_id: RequestId
    action: Literal["submit"]
    command_opd_nm: Vector = Field(
        description="Final correction, nm OPD, in the order of the modes."
    )


# -- parts of a request ------------------------------------------------------


class Pupil(ClosedModel):
    """The aperture on which the modes are orthonormal."""

    shape: Literal["circle with a concentric circular obscuration"]
    samples: int = Field(description="Pupil samples across the diameter.")
    sampling: str = Field(description="Where the samples are, and which are open.")
    obscuration: float = Field(description="Diameter of the obscuration over that of the pupil.")


class Mode(ClosedModel):
    """One coefficient's meaning."""

    index: int = Field(description="Position in every command and estimate, from 0.")
    noll: int = Field(description="Noll index of the Zernike polynomial it starts from.")
    name: str


class Instrument(ClosedModel):
    """Public calibration: everything about the camera but the wavefront."""

    wavelength_nm: float
    pupil: Pupil
    modes: list[Mode]
    mode_normalisation: str
    rows: int
    columns: int
    samples_per_lambda_over_d: float = Field(description="Detector pixels per lambda/D.")
    orientation: str
    photons_per_exposure: int = Field(
        description="Expected photons entering the whole image plane in one exposure."
    )
    read_noise_e: float = Field(description="Gaussian read noise, electrons RMS per pixel.")
    noise_model: str
    command_unit: str
    command_bound_nm: float = Field(
        description="Largest magnitude of any command coefficient, nm OPD."
    )
    command_convention: str


class Counters(ClosedModel):
    """One number for each resource."""

    requests: int
    exposures: int
    estimates: int
    photons: int = Field(description="Expected photons, not realised ones.")


class Resources(ClosedModel):
    """Limits, and what is spent of them."""

    limits: Counters
    spent: Counters


class Exposed(ClosedModel):
    """The action was an exposure; its image is the observation."""

    kind: Literal["exposed"]
    exposure_index: int


class Estimated(ClosedModel):
    """The action was an estimate."""

    kind: Literal["estimated"]
    cached: bool = Field(
        description="Whether the images were unchanged, so that a saved fit is shown."
    )
    fit: Fit


class Rejected(ClosedModel):
    """The line was no valid action; nothing but the request allowance changed."""

    kind: Literal["rejected"]
    code: RejectionCode
    message: str = Field(description="A sentence for people; it may change, the code does not.")


class Observation(ClosedModel):
    """One acquired image."""

    command_opd_nm: Vector
    exposure_index: int = Field(description="From 0, the initial image under the zero command.")
    electrons: list[list[float]] = Field(
        description="Rows of signed electrons; row 0 is the bottom row."
    )
    png_base64: str = Field(description="Display only: palette PNG, row 0 drawn at the bottom.")
    row_order: str


class Request(ClosedModel):
    """A request for one action."""

    protocol: Literal["probebench.agent.v1"]
    kind: Literal["request"]
    request_id: RequestId
    previous_record_sha256: Sha256 = Field(
        description="Digest of the journal record before the one that holds this request."
    )
    turn: int = Field(
        description="Number of the turn that the answer to this request makes, from 1."
    )
    track: Track
    instrument: Instrument
    estimator: EstimatorDisclosure | None = Field(
        description="What the supplied estimator does, or null in the direct_action track."
    )
    resources: Resources
    available_actions: list[ActionName]
    last_result: Annotated[Exposed | Estimated | Rejected, Field(discriminator="kind")] | None
    observation: Observation = Field(description="The last acquired image.")


class Outcome(ClosedModel):
    """How the episode ended."""

    status: Literal["submitted", "failed"]
    cause: Literal["submitted", "eof", "timeout", "oversize", "request_allowance"]


class Acknowledgement(ClosedModel):
    """The last message; it says nothing of how good the final command is."""

    protocol: Literal["probebench.agent.v1"]
    kind: Literal["final"]
    previous_record_sha256: Sha256
    outcome: Outcome
    final_command_opd_nm: Vector = Field(
        description="The submitted command; of a failed episode, the last measured one."
    )
    earlier_observations_of_final_command: list[int] = Field(
        description="Exposure indices at which exactly this command was measured."
    )
    resources: Resources
    last_acquired_observation: Observation = Field(
        description="The last acquired image; not an image under the final command unless that was measured last."
    )


CLIENT_MESSAGES: dict[str, type[ClosedModel]] = {
    "expose": ExposeAction,
    "estimate": EstimateAction,
    "submit": SubmitAction,
}
DRIVER_MESSAGES: dict[str, type[ClosedModel]] = {"request": Request, "final": Acknowledgement}
