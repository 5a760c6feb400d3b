"""The camera: public calibration, expected images, and the detector's draws."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.propagation import Optics, Reals, one_blas_thread, optics
from probebench.kernel.canonical import Json

Frame: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]

EXPECTATION_QUANTUM_E = 2.0**-20

# Words of the Philox counter: the generator itself counts in the first two.
_POISSON_STREAM = 0
_READ_NOISE_STREAM = 1


@dataclass(frozen=True)
class Calibration:
    """Everything about the camera but the wavefront; public.

    photons_per_exposure: expected photons that enter the whole image plane.
    read_noise_e: Gaussian read noise, electrons RMS per pixel.
    command_bound_nm: largest magnitude of a command coefficient, nm OPD.
    """

    wavelength_nm: float
    pupil_samples: int
    obscuration: float
    pixels: int
    samples_per_lambda_over_d: float
    photons_per_exposure: int
    read_noise_e: float
    command_bound_nm: float

    def document(self) -> Json:
        """Return the calibration as plain JSON."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Json) -> Calibration:
        """Read what ``document`` gave.  Raises TypeError for other keys."""
        return cls(**document)

    @property
    def optics(self) -> Optics:
        """The optics of this geometry, built once."""
        return optics(
            self.wavelength_nm,
            self.pupil_samples,
            self.obscuration,
            self.pixels,
            self.samples_per_lambda_over_d,
        )


def calibration(config: OpticalConfig) -> Calibration:
    """The public part of a configuration."""
    return Calibration(
        wavelength_nm=config.wavelength_nm,
        pupil_samples=config.pupil.samples,
        obscuration=config.pupil.obscuration,
        pixels=config.detector.pixels,
        samples_per_lambda_over_d=config.detector.samples_per_lambda_over_d,
        photons_per_exposure=config.detector.photons_per_exposure,
        read_noise_e=config.detector.read_noise_e,
        command_bound_nm=config.command_bound_nm,
    )


def expected_frame(calibration: Calibration, residual_opd_nm: Reals) -> Frame:
    """Expected electrons, (rows, columns) float64, under a (6,) residual OPD.

    Light outside the detector is lost, so the sum is below
    ``photons_per_exposure``.  One electron is expected per photon.
    """
    with one_blas_thread():
        psf = calibration.optics.psf(residual_opd_nm)
    return (calibration.photons_per_exposure * psf).reshape(calibration.pixels, calibration.pixels)


def draw_frame(expected_e: Frame, read_noise_e: float, seed_hex: str, exposure_index: int) -> Frame:
    """Draw one frame: signed electrons, (rows, columns) float64.

    expected_e: (rows, columns) expected electrons, none negative.
    seed_hex: the detector's 128-bit seed, 32 hexadecimal digits.
    exposure_index: of the exposure, from 0; each has streams of its own, so a
        frame depends on no other exposure.
    """
    # Poisson before read noise, from a stream of its own: swapping or joining
    # them changes every saved journal.
    noise = _generator(seed_hex, exposure_index, _READ_NOISE_STREAM).standard_normal(
        expected_e.shape
    )
    return draw_photons(expected_e, seed_hex, exposure_index) + read_noise_e * noise


def draw_photons(expected_e: Frame, seed_hex: str, exposure_index: int) -> Frame:
    """Draw the photons of ``draw_frame`` alone: counts per pixel, float64."""
    # The last bits of an expectation depend on the processor's arithmetic;
    # the draw from a quantised one hardly ever does.
    quantised_e = np.rint(expected_e / EXPECTATION_QUANTUM_E) * EXPECTATION_QUANTUM_E
    counts = _generator(seed_hex, exposure_index, _POISSON_STREAM).poisson(quantised_e)
    return counts.astype(np.float64)


def _generator(seed_hex: str, exposure_index: int, stream: int) -> np.random.Generator:
    counter = np.array([0, 0, stream, exposure_index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=int(seed_hex, 16), counter=counter))
