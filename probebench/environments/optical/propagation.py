"""From pupil to detector: one matrix Fourier transform, and its derivatives.

An image is |F|^2 with F(u, v) = sum over the pupil of
exp(2 pi i OPD / wavelength) exp(-2 pi i (u x + v y)): pixel j at
(j - (n-1)/2) / q in lambda/D, sample i at (i - (N-1)/2) / N in D.  Only the
detector's pixels are computed; nothing is padded or cropped (Soummer et al.
2007, Opt. Express 15, 15935).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from probebench.environments.optical.modes import NOLL_INDICES, orthonormal_modes, pupil_mask

Reals: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Complexes: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.complex128]]

# Built once: finding the loaded libraries takes a hundred times as long as
# setting their limit.
_LIBRARIES = ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Context in which NumPy's BLAS uses one thread.

    With more, the order of its sums, hence the last bits of an image, would
    depend on the number of processors; at these sizes more are slower too.
    SciPy has a BLAS of its own, which a fit loads later; the 6 by 6 matrices
    that it factors there are never split among threads.
    """
    limiter: AbstractContextManager[object] = _LIBRARIES.limit(limits=1, user_api="blas")
    return limiter


class Optics:
    """The pupil, the modes and the transform of one geometry.

    wavelength_nm: of the monochromatic point source.
    pupil_samples: N, across the diameter.
    obscuration: diameter of the obscuration over that of the pupil.
    pixels: n, rows and columns of the detector.
    samples_per_lambda_over_d: q, pixels per lambda/D.
    """

    def __init__(
        self,
        wavelength_nm: float,
        pupil_samples: int,
        obscuration: float,
        pixels: int,
        samples_per_lambda_over_d: float,
    ) -> None:
        self._radians_per_nm = 2 * np.pi / wavelength_nm
        self.pupil = pupil_mask(pupil_samples, obscuration)
        self.modes = orthonormal_modes(pupil_samples, obscuration)
        self._open_modes = self.modes[:, self.pupil]
        position = (np.arange(pupil_samples) - (pupil_samples - 1) / 2) / pupil_samples
        pixel = (np.arange(pixels) - (pixels - 1) / 2) / samples_per_lambda_over_d
        # Parseval: over one period of the image, N q pixels along each axis,
        # the kernel without its amplitude sums to (N q)^2 times the open area.
        amplitude = 1 / (
            pupil_samples * samples_per_lambda_over_d * np.sqrt(np.count_nonzero(self.pupil))
        )
        # Negative exponent, so that OPD growing with +y moves the spot to +y.
        kernel = np.exp(-2j * np.pi * np.outer(position, pixel))
        self._columns = kernel
        self._rows = np.ascontiguousarray(amplitude * kernel.T)

    def psf(self, residual_opd_nm: Reals) -> Reals:
        """Images under ``residual_opd_nm``, (..., 6) nm RMS of OPD.

        Returns (..., rows, columns): each pixel's share of the light that
        enters the whole image plane.  Row 0 is the bottom.
        """
        field = self._to_detector(self._pupil_field(residual_opd_nm))
        return _square_modulus(field)

    def psf_and_jacobian(self, residual_opd_nm: Reals) -> tuple[Reals, Reals]:
        """Images as in ``psf``, and their derivatives in each coefficient.

        Returns (..., rows, columns) and (..., 6, rows, columns) per nm:
        dI/dc = 2 Re(conj(F) dF/dc), dF/dc = transform(2 pi i / wavelength mode field).
        """
        pupil_field = self._pupil_field(residual_opd_nm)
        stacked = np.empty(
            (*pupil_field.shape[:-2], 1 + len(NOLL_INDICES), *pupil_field.shape[-2:]), complex
        )
        stacked[..., 0, :, :] = pupil_field
        np.multiply(pupil_field[..., np.newaxis, :, :], self.modes, out=stacked[..., 1:, :, :])
        fields = self._to_detector(stacked)
        field, derivatives = fields[..., :1, :, :], fields[..., 1:, :, :]
        # Re(conj(F) i G) = -Im(conj(F) G), without the complex product.
        jacobian = field.imag * derivatives.real - field.real * derivatives.imag
        jacobian *= 2 * self._radians_per_nm
        return _square_modulus(field[..., 0, :, :]), jacobian

    def wavefront_rms_nm(self, opd_nm: Reals) -> float:
        """RMS over the open pupil of a (6,) OPD about its mean, nm."""
        return float(np.std(opd_nm @ self._open_modes))

    def strehl(self, residual_opd_nm: Reals) -> float:
        """Intensity on the optical axis over that of no aberration; exact.

        |mean over the open pupil of exp(2 pi i OPD / wavelength)|^2.
        """
        phase = self._radians_per_nm * (residual_opd_nm @ self._open_modes)
        return float(np.mean(np.cos(phase)) ** 2 + np.mean(np.sin(phase)) ** 2)

    def _pupil_field(self, residual_opd_nm: Reals) -> Complexes:
        opd_nm = np.tensordot(residual_opd_nm, self.modes, axes=1)
        phase = self._radians_per_nm * opd_nm
        field = np.empty(phase.shape, complex)
        np.cos(phase, out=field.real, where=self.pupil)
        np.sin(phase, out=field.imag, where=self.pupil)
        field[..., ~self.pupil] = 0
        return field

    def _to_detector(self, pupil_fields: Complexes) -> Complexes:
        # One product for all fields of all images, then one along the rows.
        samples, pixels = self._columns.shape
        half = pupil_fields.reshape(-1, samples) @ self._columns
        fields: Complexes = self._rows @ half.reshape(*pupil_fields.shape[:-1], pixels)
        return fields


def _square_modulus(field: Complexes) -> Reals:
    intensity: Reals = field.real**2 + field.imag**2
    return intensity


@lru_cache(maxsize=16)
def optics(
    wavelength_nm: float,
    pupil_samples: int,
    obscuration: float,
    pixels: int,
    samples_per_lambda_over_d: float,
) -> Optics:
    """The optics of a geometry, built once."""
    with one_blas_thread():
        return Optics(wavelength_nm, pupil_samples, obscuration, pixels, samples_per_lambda_over_d)
