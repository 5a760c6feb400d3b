"""Hidden: the incident wavefront, and the camera that looks at it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probebench.environments.optical.camera import (
    Frame,
    calibration,
    draw_frame,
    draw_photons,
    expected_frame,
)
from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.propagation import Reals
from probebench.kernel.canonical import Json


def incident_opd_nm(config: OpticalConfig) -> Reals:
    """The incident wavefront, (6,) nm RMS: isotropic direction, RMS uniform in its range."""
    generator = np.random.Generator(np.random.Philox(key=int(config.fixture.wavefront_seed, 16)))
    direction = generator.standard_normal(6)
    rms_nm = generator.uniform(*config.fixture.incident_rms_nm)
    return rms_nm * direction / np.linalg.norm(direction)


class Instrument:
    """The camera with its wavefront inside; the episode sees ``expose`` alone."""

    def __init__(self, config: OpticalConfig) -> None:
        self._calibration = calibration(config)
        self._detector_seed = config.fixture.detector_seed
        self._incident_opd_nm = incident_opd_nm(config)

    def expose(self, command_opd_nm: Sequence[float], exposure_index: int) -> Frame:
        """Acquire one image, (rows, columns) electrons, under a (6,) command."""
        return draw_frame(
            self.expected(command_opd_nm),
            self._calibration.read_noise_e,
            self._detector_seed,
            exposure_index,
        )

    def expected(self, command_opd_nm: Sequence[float]) -> Frame:
        """Expected electrons, (rows, columns), under a (6,) command."""
        residual_opd_nm = self._incident_opd_nm - np.asarray(command_opd_nm, dtype=np.float64)
        return expected_frame(self._calibration, residual_opd_nm)

    def realised_photons(self, command_opd_nm: Sequence[float], exposure_index: int) -> int:
        """Photons that an exposure had on the detector."""
        expected_e = self.expected(command_opd_nm)
        return int(draw_photons(expected_e, self._detector_seed, exposure_index).sum())


def secrets(config: OpticalConfig, evaluation: Json) -> list[Json]:
    """Every hidden value of a session: fixture, name, and the evaluator's figures."""
    incident = incident_opd_nm(config)
    hidden: list[Json] = [
        *incident.tolist(),
        float(np.linalg.norm(incident)),
        config.fixture.wavefront_seed,
        config.fixture.detector_seed,
        int(config.fixture.wavefront_seed, 16),
        int(config.fixture.detector_seed, 16),
        config.name,
    ]
    return hidden + _leaves(evaluation)


def _leaves(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() if key not in PUBLIC for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


# Of the evaluation: what the client knows anyway, having commanded it.
PUBLIC = {"final_command_opd_nm", "best_measured_exposure_index"}
