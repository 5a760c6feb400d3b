"""The optical environment: the public side, closed over a hidden one."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from typing import Protocol

import numpy as np
from PIL import Image

from probebench.environments.optical import config as configuration
from probebench.environments.optical.camera import Calibration, calibration
from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.display import png_chunks
from probebench.environments.optical.episode import Expose, Frame, OpticalEpisode
from probebench.environments.optical.estimator import fit
from probebench.environments.optical.fit_check import check_fit
from probebench.kernel.budget import Budget, Ledger
from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment, Part
from probebench.kernel.episode import Final, Task
from probebench.kernel.schema import parse_record
from probebench.kernel.study import Study
from probebench.wire.optical_fit import Fit

# What another processor, BLAS or NumPy may change in a derived figure.  An
# estimate is only sharp to the gradient tolerance over the curvature, in nm.
# Frames are compared exactly: they are draws from a quantised expectation.
RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = {Part.VALUE: 1e-4, Part.EVALUATION: 1e-6}


class HiddenSide(Protocol):
    """What the composition supplies and this module must not import."""

    def instrument(self, config: OpticalConfig) -> Expose:
        """The camera with its wavefront inside."""
        ...

    def evaluate(
        self,
        config: OpticalConfig,
        exposed_commands_opd_nm: list[list[float]],
        final_command_opd_nm: list[float],
    ) -> Json:
        """The evaluation of a finished episode."""
        ...

    def secrets(self, config: OpticalConfig, evaluation: Json) -> Sequence[Json]:
        """Every hidden value."""
        ...


@dataclass(frozen=True)
class OpticalEnvironment(Environment):
    """The static six-mode camera, protocol ``probebench.agent.v1``."""

    hidden: HiddenSide
    id: str = "optical"

    def configure(self, config: Json) -> None:
        """Check a configuration.  Raises ConfigError."""
        configuration.parse(config)

    def budget(self, study: Study) -> Budget:
        """Requests, exposures, estimates, and expected photons."""
        config = configuration.parse(study.config)
        budget = config.budget
        return Budget(
            {
                "requests": budget.requests,
                "exposures": budget.exposures,
                "estimates": budget.estimates,
                "photons": budget.exposures * config.detector.photons_per_exposure,
            }
        )

    def open(self, study: Study, nonce: bytes) -> OpticalEpisode:
        """Acquire the initial image under the zero command."""
        config = configuration.parse(study.config)
        return OpticalEpisode(
            config,
            calibration(config),
            Ledger(self.budget(study)),
            nonce,
            self.hidden.instrument(config),
        )

    def run(self, task: Task) -> Json:
        """Fit the incident wavefront to the images of ``task``."""
        return fit(*_fit_inputs(task)).model_dump(mode="json")

    def check(self, task: Task, value: Json) -> None:
        """Check that a saved fit is one of these images.  Raises ValueError."""
        check_fit(*_fit_inputs(task), parse_record(Fit, value))

    def evaluate(self, study: Study, final: Final) -> Json:
        """Judge the final command by the wavefront."""
        config = configuration.parse(study.config)
        return self.hidden.evaluate(config, **final.evidence)

    def secrets(self, study: Study, evaluation: Json) -> Sequence[Json]:
        """Latent coefficients, seeds, name, and the hidden figures."""
        config = configuration.parse(study.config)
        return self.hidden.secrets(config, evaluation)

    def agree(self, part: Part, saved: Json, recomputed: Json) -> bool:
        """Frames and all else exactly; derived figures within the tolerance."""
        if part is Part.MESSAGE:
            return _same_but_png_encoding(saved, recomputed)
        if part is Part.VALUE:
            # Which path a start took may differ in its last step, and one that
            # diverged anywhere; what the fit concludes may not.
            saved, recomputed = _conclusions(saved), _conclusions(recomputed)
        return _close(saved, recomputed, ABSOLUTE_TOLERANCE[part])


def _fit_inputs(task: Task) -> tuple[Calibration, list[Frame], list[list[float]]]:
    frames_e = [np.array(rows, dtype=np.float64) for rows in task.spec["frames_e"]]
    return (
        Calibration.from_document(task.spec["calibration"]),
        frames_e,
        task.spec["commands_opd_nm"],
    )


def _same_but_png_encoding(saved: Json, recomputed: Json) -> bool:
    """Equal messages; two PNG files are equal if their palette images are."""
    return bool(_with_decoded_png(saved) == _with_decoded_png(recomputed))


def _with_decoded_png(message: Json) -> Json:
    if isinstance(message, dict):
        return {
            key: _decoded(value) if key == "png_base64" else _with_decoded_png(value)
            for key, value in message.items()
        }
    return message


def _decoded(png_base64: Json) -> Json:
    try:
        png = base64.b64decode(png_base64)
        with Image.open(BytesIO(png)) as image:
            # Another zlib may cut the data into other chunks, but there are no others.
            kinds = [kind for kind, _ in groupby(png_chunks(png))]
            return [image.mode, image.size, image.tobytes(), image.getpalette(), kinds]
    except (OSError, ValueError, TypeError, struct.error):
        return png_base64


def _conclusions(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if key != "starts"}


def _close(saved: Json, recomputed: Json, absolute: float) -> bool:
    if isinstance(saved, dict) and isinstance(recomputed, dict):
        return saved.keys() == recomputed.keys() and all(
            _close(item, recomputed[key], absolute) for key, item in saved.items()
        )
    if isinstance(saved, list) and isinstance(recomputed, list):
        return len(saved) == len(recomputed) and all(
            _close(ours, theirs, absolute) for ours, theirs in zip(saved, recomputed, strict=True)
        )
    if isinstance(saved, float) and isinstance(recomputed, float):
        return math.isclose(saved, recomputed, rel_tol=RELATIVE_TOLERANCE, abs_tol=absolute)
    return bool(saved == recomputed)
