"""The configuration of one optical session: public calibration and hidden fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from probebench.kernel.canonical import Json
from probebench.kernel.errors import ConfigError
from probebench.kernel.schema import ClosedModel, parse_config
from probebench.wire.optical import PROTOCOL

SEED_BYTES = 16

TRACKS = ("tool_assisted", "direct_action")


def _development_only(value: object) -> object:
    if value != "development":
        raise ValueError("only development configurations are run; this one is labelled otherwise")
    return value


Seed = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-f]{32}$",
        description="128 bits, 32 lowercase hexadecimal digits; brute force finds smaller ones.",
    ),
]


class PupilConfig(ClosedModel):
    """The aperture."""

    samples: int = Field(ge=16, le=256, description="Samples across the diameter.")
    obscuration: float = Field(
        ge=0, le=0.6, description="Diameter of the central obscuration over that of the pupil."
    )


class DetectorConfig(ClosedModel):
    """The camera."""

    pixels: int = Field(ge=8, le=128, description="Rows, and columns, of the square detector.")
    samples_per_lambda_over_d: float = Field(
        ge=1, le=8, description="Pixels per lambda/D; 2 samples the intensity critically."
    )
    photons_per_exposure: int = Field(
        ge=100, le=10**9, description="Expected photons that enter the whole image plane."
    )
    read_noise_e: float = Field(
        ge=0.1, le=100, description="Gaussian read noise, electrons RMS; the likelihood needs some."
    )


class BudgetConfig(ClosedModel):
    """What the client may spend."""

    exposures: int = Field(ge=1, le=1000, description="The initial zero-command image is one.")
    estimates: int = Field(ge=0, le=1000, description="Calls of the supplied estimator.")
    requests: int = Field(ge=1, le=10_000, description="Lines read as actions, rejected ones too.")


class FixtureConfig(ClosedModel):
    """What the client must not know."""

    wavefront_seed: Seed
    detector_seed: Seed
    incident_rms_nm: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]] = Field(
        description="Range [low, high] of the incident wavefront's RMS, nm OPD."
    )

    @field_validator("incident_rms_nm")
    @classmethod
    def _ascending(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] > value[1]:
            raise ValueError("the range must be [low, high], and low is above high")
        return value


class OpticalConfig(ClosedModel):
    """One session of the static six-mode camera.  Every field is required."""

    environment: Literal["optical"]
    purpose: Annotated[Literal["development"], BeforeValidator(_development_only)]
    name: str = Field(min_length=1, max_length=200, description="Free; never shown to a client.")
    protocol: Literal["probebench.agent.v1"]
    track: Literal["tool_assisted", "direct_action"]
    wavelength_nm: float = Field(
        ge=300, le=4000, description="The estimator's starts scale with it and stay in its bound."
    )
    pupil: PupilConfig
    detector: DetectorConfig
    command_bound_nm: float = Field(
        gt=0, le=500, description="Largest magnitude of a command coefficient, nm OPD."
    )
    budget: BudgetConfig
    input_deadline_s: float = Field(gt=0, le=86_400, description="For one whole line of input.")
    fixture: FixtureConfig

    @field_validator("detector")
    @classmethod
    def _inside_one_period(cls, detector: DetectorConfig, seen: ValidationInfo) -> DetectorConfig:
        pupil = seen.data.get("pupil")
        if pupil is not None:
            # The sampled pupil repeats its image with this period; a detector
            # beyond it would count the same light twice.
            period = pupil.samples * detector.samples_per_lambda_over_d
            if detector.pixels > period:
                raise ValueError(
                    f"pixels ({detector.pixels}) must not exceed pupil.samples times "
                    f"samples_per_lambda_over_d ({period:g})"
                )
        return detector

    @field_validator("budget")
    @classmethod
    def _no_estimates_without_a_tool(
        cls, budget: BudgetConfig, seen: ValidationInfo
    ) -> BudgetConfig:
        if seen.data.get("track") == "direct_action" and budget.estimates != 0:
            raise ValueError(
                f"estimates must be 0 in the direct_action track, which has no estimator; "
                f"it is {budget.estimates}"
            )
        return budget

    @model_validator(mode="after")
    def _correctable(self) -> OpticalConfig:
        if self.fixture.incident_rms_nm[1] > self.command_bound_nm:
            raise ValueError(
                "fixture.incident_rms_nm reaches beyond command_bound_nm, so that some wavefronts "
                "could not be corrected"
            )
        return self


def parse(value: Json) -> OpticalConfig:
    """Read a configuration.

    Raises ConfigError with one sentence that names every faulty field by path.
    """
    return parse_config(OpticalConfig, value, hidden=("name", "fixture"))


_PRESETS: dict[str, tuple[int, int, float]] = {
    # name: (pupil samples, detector pixels, samples per lambda/D)
    "default": (64, 32, 2.0),
    "stress": (128, 64, 3.0),
}


def fresh_config(
    entropy: Callable[[int], bytes], track: str, name: str, preset: str = "default"
) -> Json:
    """A development configuration with fresh 128-bit seeds.

    entropy: returns that many unpredictable bytes (``secrets.token_bytes``).
    Raises ConfigError for an unknown track or preset.
    """
    if preset not in _PRESETS:
        known = ", ".join(_PRESETS)
        raise ConfigError(f"there is no optical preset {preset!r:.40}; use one of {known}")
    if track not in TRACKS:
        raise ConfigError(f"there is no track {track!r:.40}; use one of {', '.join(TRACKS)}")
    samples, pixels, samples_per_lambda_over_d = _PRESETS[preset]
    config = {
        "environment": "optical",
        "purpose": "development",
        "name": name,
        "protocol": PROTOCOL,
        "track": track,
        "wavelength_nm": 850.0,
        "pupil": {"samples": samples, "obscuration": 0.2},
        "detector": {
            "pixels": pixels,
            "samples_per_lambda_over_d": samples_per_lambda_over_d,
            "photons_per_exposure": 30_000,
            "read_noise_e": 3.0,
        },
        "command_bound_nm": 200.0,
        "budget": {
            "exposures": 6,
            "estimates": 3 if track == "tool_assisted" else 0,
            "requests": 24,
        },
        "input_deadline_s": 300.0,
        "fixture": {
            "wavefront_seed": entropy(SEED_BYTES).hex(),
            "detector_seed": entropy(SEED_BYTES).hex(),
            "incident_rms_nm": [60.0, 150.0],
        },
    }
    parse(config)
    return config
