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

__all__ = ["Imaging", "Optics", "Reals", "one_blas_thread", "optics"]

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

    The attributes that are arrays are the constants of the transform; Imaging
    and Linearisation use them.
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
        self.twice_open = 2 * is_open.ravel()
        self.mode_signs = np.stack([signs(parity) for parity in MODE_PARITIES], axis=1)
        half_phase = self.radians_per_nm / 2 * quadrant(self.modes)
        self.half_phase = np.ascontiguousarray(half_phase.reshape(_MODES, -1))
        # Parseval: over one period of the image, N q pixels along each axis,
        # the transform without its amplitude sums to (N q)^2 times the open area.
        period = pupil_samples * samples_per_lambda_over_d
        amplitude = 1 / (period * np.sqrt(np.count_nonzero(self.pupil)))
        self.fold = amplitude * fold()
        self.folded_open = amplitude * 4 * is_open.ravel()
        self.unfold = unfold()
        self.axis = HalfAxis.of(pupil_samples, pixels, samples_per_lambda_over_d)
        self.along_x = np.stack([self.axis.kernel(parity) for parity in (0, 1)])
        self.along_y = np.ascontiguousarray(self.along_x.transpose(0, 2, 1))[:, np.newaxis]
        self.places = pixel_quadrants(pixels)
        self._obscuration = obscuration

    def psf(self, residual_opd_nm: Reals) -> Reals:
        """Images under ``residual_opd_nm``, (..., 6) nm RMS of OPD.

        Returns (..., rows, columns): each pixel's share of the light that
        enters the whole image plane.  Row 0 is the bottom.
        """
        rows = residual_opd_nm.reshape(-1, _MODES)
        images = Imaging(self, len(rows)).images(rows)
        return images.reshape(*residual_opd_nm.shape[:-1], *self.places.shape)

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


class Imaging:
    """Images of several wavefronts.

    count: of the wavefronts.
    It keeps its arrays: fresh ones would take as long as the arithmetic.  What
    it returns holds until its next call.

    parts: of the pupil fields, (count, px, py, c, h, h) of the latest call.
    fields: on the detector, (count, quadrant, c, m, m) of the latest call.
    """

    def __init__(self, optics: Optics, count: int) -> None:
        self._optics = optics
        half, pixels = len(optics.axis.position), len(optics.axis.pixel)
        self.parts = np.empty((count, 2, 2, 2, half, half))
        self.fields = np.empty((count, 4, 2, pixels, pixels))
        self._images = np.empty((count, *optics.places.shape))
        # One wavefront after another passes through these, which then stay in
        # the processor's caches.
        self._pupil_field = np.empty((2, 4, half * half))
        self._along_x = np.empty((2, 4 * half, pixels))
        self._along_both = np.empty((2, 2, 2, pixels, pixels))
        self._squares = np.empty((4, 2 * pixels * pixels))
        self._quadrants = np.empty((4, pixels * pixels))
        # Views made once: making them would take a quarter of the time of a small image.
        self._pupil_rows = self._pupil_field.reshape(8, -1)
        self._by_parity = self._along_x.reshape(2, 2, 2, half, pixels)
        self._both_rows = self._along_both.reshape(4, -1)
        self._real_squares, self._imaginary_squares = np.split(self._squares, 2, axis=1)
        self._flat_quadrants = self._quadrants.reshape(-1)
        self._views = [
            (parts.reshape(8, -1), parts.reshape(2, 4 * half, half), fields.reshape(4, -1), image)
            for parts, fields, image in zip(self.parts, self.fields, self._images, strict=True)
        ]

    def images(self, residual_opd_nm: Reals) -> Reals:
        """Images, (count, rows, columns), under (count, 6) nm RMS of OPD; see ``Optics.psf``."""
        for row, (part_rows, parts_along_x, field_rows, image) in zip(
            residual_opd_nm, self._views, strict=True
        ):
            self._fold_pupil(row, part_rows)
            self._transform(parts_along_x, field_rows)
            self._square(field_rows, image)
        return self._images

    def _fold_pupil(self, residual_opd_nm: Reals, part_rows: Reals) -> None:
        # exp(i phase) from t = tan(phase / 2), one transcendental function
        # instead of two: cos = 2 / (1 + t^2) - 1, sin = 2 t / (1 + t^2).
        optics, (cosine, sine) = self._optics, self._pupil_field
        np.matmul(optics.mode_signs * residual_opd_nm, optics.half_phase, sine)
        np.tan(sine, sine)
        np.multiply(sine, sine, cosine)
        np.add(cosine, 1, cosine)
        np.divide(optics.twice_open, cosine, cosine)
        np.multiply(sine, cosine, sine)
        np.matmul(optics.fold, self._pupil_rows, part_rows)
        # The 1 of the cosine is even and real: it is in the first part alone.
        np.subtract(part_rows[0], optics.folded_open, part_rows[0])

    def _transform(self, parts_along_x: Reals, field_rows: Reals) -> None:
        optics = self._optics
        np.matmul(parts_along_x, optics.along_x, self._along_x)
        np.matmul(optics.along_y, self._by_parity, self._along_both)
        np.matmul(optics.unfold, self._both_rows, field_rows)

    def _square(self, field_rows: Reals, image: Reals) -> None:
        np.multiply(field_rows, field_rows, self._squares)
        np.add(self._real_squares, self._imaginary_squares, self._quadrants)
        # mode="clip" lets NumPy write without a copy; no index is out of bounds.
        self._flat_quadrants.take(self._optics.places, out=image, mode="clip")


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
