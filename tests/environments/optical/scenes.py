"""Cameras, wavefronts and images that the physics tests share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from probebench.environments.optical import config as configuration
from probebench.environments.optical.camera import Calibration, draw_frame, expected_frame
from probebench.environments.optical.propagation import Reals

WAVELENGTH_NM = 850.0
DEVELOPMENT = Calibration(
    wavelength_nm=WAVELENGTH_NM,
    pupil_samples=64,
    obscuration=0.2,
    pixels=32,
    samples_per_lambda_over_d=2.0,
    photons_per_exposure=30_000,
    read_noise_e=3.0,
    command_bound_nm=200.0,
)
# Half as fine, so that hundreds of draws and dozens of fits take seconds.
SMALL = Calibration(
    wavelength_nm=WAVELENGTH_NM,
    pupil_samples=32,
    obscuration=0.2,
    pixels=20,
    samples_per_lambda_over_d=2.0,
    photons_per_exposure=30_000,
    read_noise_e=3.0,
    command_bound_nm=200.0,
)

ZERO_OPD_NM = [0.0] * 6
PROBE_OPD_NM = [80.0, 0.0, 0.0, 0.0, 0.0, 0.0]
COMMANDS_OPD_NM = [ZERO_OPD_NM, PROBE_OPD_NM]

# Every mode present, no symmetry left, RMS 86 nm.
INCIDENT_OPD_NM = np.array([60.0, -30.0, 20.0, 40.0, -25.0, 10.0])
# Even modes negated: a pupil field reflected and conjugated.
TWIN_SIGNS = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])


def wavefront(seed: int, rms_nm: float) -> Reals:
    """A (6,) OPD in a direction drawn from ``seed``."""
    direction = np.random.default_rng(seed).standard_normal(6)
    return rms_nm * direction / np.linalg.norm(direction)


def expected_frames(
    camera: Calibration, incident_opd_nm: Reals, commands_opd_nm: Sequence[Sequence[float]]
) -> list[Any]:
    """The images without noise."""
    return [expected_frame(camera, incident_opd_nm - np.array(c)) for c in commands_opd_nm]


def frames(
    camera: Calibration,
    incident_opd_nm: Reals,
    commands_opd_nm: Sequence[Sequence[float]],
    seed: int,
) -> list[Any]:
    """The images as the detector would give them."""
    expected = expected_frames(camera, incident_opd_nm, commands_opd_nm)
    return [draw_frame(e, camera.read_noise_e, f"{seed:032x}", i) for i, e in enumerate(expected)]


def seeded_entropy(root: str) -> Any:
    """Bytes that look fresh and are the same in every run."""
    drawn = 0

    def entropy(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return hashlib.sha256(f"{root} {drawn}".encode()).digest()[:count]

    return entropy


def document(root: str = "test", preset: str = "default") -> dict[str, Any]:
    """A configuration as plain JSON."""
    written: dict[str, Any] = configuration.fresh_config(
        seeded_entropy(root), "tool_assisted", root, preset
    )
    return written


def config(root: str = "test", preset: str = "default") -> configuration.OpticalConfig:
    """A configuration, parsed."""
    return configuration.parse(document(root, preset))
