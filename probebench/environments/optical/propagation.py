"""From pupil to detector: one matrix Fourier transform.

An image is |F|^2 with F(u, v) = sum over the pupil of
exp(2 pi i OPD / wavelength) exp(-2 pi i (u x + v y)): pixel j at
(j - (n-1)/2) / q in lambda/D, sample i at (i - (N-1)/2) / N in D.  Only the
detector's pixels are computed; nothing is padded or cropped (Soummer et al.
2007, Opt. Express 15, 15935).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property, lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from probebench.environments.optical.mode_transforms import (
    MODE_PARITIES,
    fields_along_y,
    powers_along_x,
)
from probebench.environments.optical.modes import (
    NOLL_INDICES,
    orthonormal_modes,
    polynomial_coefficients,
    pupil_mask,
)
from probebench.environments.optical.symmetry import (
    HalfAxis,
    Reals,
    fold,
    pixel_quadrants,
    quadrant,
    signs,
    unfold,
)

__all__ = ["Optics", "Reals", "one_blas_thread", "optics"]

_MODES = len(NOLL_INDICES)

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

    ``parts``, ``field`` and ``intensity`` are the steps of ``psf``, for those who
    need more of a wavefront than its image.
    """

    def __init__(
        self,
        wavelength_nm: float,
        pupil_samples: int,
        obscuration: float,
        pixels: int,
        samples_per_lambda_over_d: float,
    ) -> None:
        self.radians_per_nm = 2 * np.pi / wavelength_nm
        self.pupil = pupil_mask(pupil_samples, obscuration)
        self.modes = orthonormal_modes(pupil_samples, obscuration)
        self._open_modes = self.modes[:, self.pupil]
        is_open = quadrant(self.pupil).astype(float)
        self._open, self._twice_open = is_open.ravel(), 2 * is_open.ravel()
        self.mode_signs = np.stack([signs(parity) for parity in MODE_PARITIES], axis=1)
        half_phase = self.radians_per_nm / 2 * quadrant(self.modes)
        self._half_phase = np.ascontiguousarray(half_phase.reshape(_MODES, -1))
        # Parseval: over one period of the image, N q pixels along each axis,
        # the transform without its amplitude sums to (N q)^2 times the open area.
        period = pupil_samples * samples_per_lambda_over_d
        self._fold = fold() / (period * np.sqrt(np.count_nonzero(self.pupil)))
        self._unfold = unfold()
        self.axis = HalfAxis.of(pupil_samples, pixels, samples_per_lambda_over_d)
        self._along_x = np.stack([self.axis.kernel(parity) for parity in (0, 1)])
        self._along_y = np.ascontiguousarray(self._along_x.transpose(0, 2, 1))
        self.places = pixel_quadrants(pixels)
        self._obscuration = obscuration

    def psf(self, residual_opd_nm: Reals) -> Reals:
        """Images under ``residual_opd_nm``, (..., 6) nm RMS of OPD.

        Returns (..., rows, columns): each pixel's share of the light that
        enters the whole image plane.  Row 0 is the bottom.
        """
        return self.intensity(self.field(self.parts(residual_opd_nm)))

    def wavefront_rms_nm(self, opd_nm: Reals) -> float:
        """RMS over the open pupil of a (6,) OPD about its mean, nm."""
        return float(np.std(opd_nm @ self._open_modes))

    def strehl(self, residual_opd_nm: Reals) -> float:
        """Intensity on the optical axis over that of no aberration; exact.

        |mean over the open pupil of exp(2 pi i OPD / wavelength)|^2.
        """
        phase = self.radians_per_nm * (residual_opd_nm @ self._open_modes)
        return float(np.mean(np.cos(phase)) ** 2 + np.mean(np.sin(phase)) ** 2)

    @cached_property
    def mode_transforms(self) -> tuple[Reals, Reals, Reals]:
        """Along x, and along y from even and from odd powers of x; see mode_transforms."""
        coefficients = polynomial_coefficients(self.modes, self._obscuration)
        return (powers_along_x(self.axis), *fields_along_y(self.axis, coefficients))

    def parts(self, residual_opd_nm: Reals) -> Reals:
        """The four parts of each pupil field, (..., py, px, c, h, h).

        exp(i phase) from t = tan(phase / 2), one transcendental function
        instead of two: cos = 2 / (1 + t^2) - 1, sin = 2 t / (1 + t^2).
        """
        tangent = (self.mode_signs * residual_opd_nm[..., np.newaxis, :]) @ self._half_phase
        np.tan(tangent, out=tangent)
        field = np.empty((*tangent.shape[:-1], 2, tangent.shape[-1]))
        divisor = tangent * tangent
        divisor += 1
        np.divide(self._twice_open, divisor, out=divisor)
        np.subtract(divisor, self._open, out=field[..., 0, :])
        np.multiply(divisor, tangent, out=field[..., 1, :])
        leading, half = residual_opd_nm.shape[:-1], len(self.axis.position)
        parts: Reals = self._fold @ field.reshape(*leading, 8, -1)
        return parts.reshape(*leading, 2, 2, 2, half, half)

    def field(self, parts: Reals) -> Reals:
        """The field on the detector, (..., quadrant, c, m, m), of a pupil field's parts."""
        along_y = self._along_y[:, np.newaxis, np.newaxis] @ parts  # (py, px, c, m, h)
        field = along_y @ self._along_x[:, np.newaxis]  # (py, px, c, m, m)
        leading, detector = parts.shape[:-5], field.shape[-3:]
        unfolded: Reals = self._unfold @ field.reshape(*leading, 4, -1)
        return unfolded.reshape(*leading, 4, *detector)

    def intensity(self, field: Reals) -> Reals:
        """The image, (..., rows, columns), of a field on the detector."""
        squares = field * field
        quadrants = squares[..., 0, :, :] + squares[..., 1, :, :]
        image: Reals = quadrants.reshape(*quadrants.shape[:-3], -1).take(self.places, axis=-1)
        return image


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
