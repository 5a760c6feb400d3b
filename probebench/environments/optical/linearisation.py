"""Derivatives of an image in the six coefficients.

dI/dc = 2 Re(conj(F) dF/dc), dF/dc = transform(2 pi i / wavelength mode field).
"""

from __future__ import annotations

import numpy as np

from probebench.environments.optical.mode_transforms import (
    EVEN_IN_X,
    MODE_PARITIES,
    ODD_ALONG_ONE_AXIS,
    ORDER,
)
from probebench.environments.optical.propagation import Imaging, Optics
from probebench.environments.optical.symmetry import Reals

_MODES = len(ORDER)


def psf_and_jacobian(optics: Optics, residual_opd_nm: Reals) -> tuple[Reals, Reals]:
    """Images under ``residual_opd_nm``, (..., 6) nm RMS of OPD, and their derivatives.

    Returns (..., rows, columns), as ``Optics.psf`` does, and
    (..., 6, rows, columns) per nm.
    """
    rows, detector = residual_opd_nm.reshape(-1, _MODES), optics.places.shape
    imaging, linearisation = Imaging(optics, len(rows)), Linearisation(optics)
    images = imaging.images(rows)
    jacobians = np.empty((len(rows), _MODES, *detector))
    for index, jacobian in enumerate(jacobians):
        jacobian[...] = linearisation.derivatives(imaging.parts[index], imaging.fields[index])
    leading = residual_opd_nm.shape[:-1]
    return images.reshape(*leading, *detector), jacobians.reshape(*leading, _MODES, *detector)


class Linearisation:
    """Derivatives of the image of one wavefront after another.

    dtype: of the derivatives; images are always float64.
    It keeps its arrays, as Imaging does.
    """

    def __init__(self, optics: Optics, dtype: type[np.floating] = np.float64) -> None:
        self._optics = optics
        axis, places = optics.axis, optics.places
        half, m = len(axis.position), len(axis.pixel)
        self._half_pixels = m
        self._powers_along_x, self._even_along_y, self._odd_along_y = (
            matrix.astype(dtype) for matrix in optics.mode_transforms
        )
        # Axes as in the symmetry module; v and u are half axes of the detector.
        # Whatever is worked on element by element is contiguous in u, and as
        # far out as can be: short rows cost more than their arithmetic.
        self._parts = np.empty((2, 4 * half, half), dtype)  # (px, (py, c, y), x)
        self._along_x = np.empty((2, 4 * half, 4 * m), dtype)  # (px, (py, c, y), (powers of x, u))
        self._by_sign = np.empty_like(self._along_x)  # the same, of sx instead of px
        self._powers = np.empty((2, 2, 2, half, 2, 2, m), dtype)  # (py, odd, power, y, c, sx, u)
        self._modes_of_parts = np.empty(
            (2, _MODES * m, 4 * m), dtype
        )  # (py, (mode, v), (c, sx, u))
        self._modes = np.empty((2, _MODES, m, 2, 2, m), dtype)  # (sy, mode, v, c, sx, u)
        self._straight, self._turned = np.empty((2, 2, 1, m, 2, 2, m), dtype)
        self._slopes = np.empty((2, _MODES, m, 2, m), dtype)  # (sy, mode, v, sx, u)
        self._jacobian = np.empty((_MODES, *places.shape), dtype)
        self._scale = np.ascontiguousarray(
            np.broadcast_to(self._signed_scale(optics), self._slopes.shape).astype(dtype)
        )
        quadrant, place = np.divmod(places, m * m)
        (sx, sy), (v, u) = np.divmod(quadrant, 2), np.divmod(place, m)
        mode = np.argsort(ORDER)[:, np.newaxis, np.newaxis]
        self._jacobian_pixels = (((sy * _MODES + mode) * m + v) * 2 + sx) * m + u

    @staticmethod
    def _signed_scale(optics: Optics) -> Reals:
        # i (-i)^n of a mode that is odd along n axes: for n = 2 another sign,
        # for n = 1 it is not real, which ``derivatives`` takes into account.
        factors = [-1.0 if sum(MODE_PARITIES[mode]) == 2 else 1.0 for mode in ORDER]
        scale = (
            2 * optics.radians_per_nm * optics.mode_signs[:, ORDER] * factors
        )  # (quadrant, mode)
        by_sign = scale.reshape(2, 2, _MODES).transpose(1, 2, 0)  # (sy, mode, sx)
        return by_sign[:, :, np.newaxis, :, np.newaxis]

    def derivatives(self, parts: Reals, field: Reals) -> Reals:
        """Derivatives per nm, (6, rows, columns), from one of the parts and fields of Imaging."""
        np.copyto(self._parts, parts.reshape(self._parts.shape))
        self._transform_modes()
        # The real part of conj(F) i G is the product of G with (Im F, -Re F),
        # and with (Re F, Im F) where G has yet to be multiplied by -i.
        m, modes, straight, turned = self._half_pixels, self._modes, self._straight, self._turned
        straight[:, 0] = field.reshape(2, 2, 2, m, m).transpose(1, 3, 2, 0, 4)
        turned[:, :, :, 0] = straight[:, :, :, 1]
        np.negative(straight[:, :, :, 0], out=turned[:, :, :, 1])
        modes[:, : ODD_ALONG_ONE_AXIS.start] *= turned
        modes[:, ODD_ALONG_ONE_AXIS] *= straight
        modes[:, ODD_ALONG_ONE_AXIS.stop :] *= turned
        np.add(modes[:, :, :, 0], modes[:, :, :, 1], out=self._slopes)
        self._slopes *= self._scale
        # mode="clip" lets NumPy write without a copy; no index is out of bounds.
        np.take(self._slopes, self._jacobian_pixels, out=self._jacobian, mode="clip")
        return self._jacobian

    def _transform_modes(self) -> None:
        """Fields on the detector of mode times pupil field, into ``_modes``."""
        m, half = self._half_pixels, self._parts.shape[-1]
        np.matmul(self._parts, self._powers_along_x, out=self._along_x)
        even_x, odd_x = self._along_x
        np.add(even_x, odd_x, out=self._by_sign[0])
        np.subtract(even_x, odd_x, out=self._by_sign[1])
        # From (sx, py, c, y, odd, power, u) to (py, odd, power, y, c, sx, u).
        by_power = self._by_sign.reshape(2, 2, 2, half, 2, 2, m)
        np.copyto(self._powers, by_power.transpose(1, 4, 5, 3, 2, 0, 6))
        powers = self._powers.reshape(2, 2, 2 * half, 4 * m)
        even = EVEN_IN_X * m
        np.matmul(self._even_along_y, powers[:, 0], out=self._modes_of_parts[:, :even])
        np.matmul(self._odd_along_y, powers[:, 1], out=self._modes_of_parts[:, even:])
        positive, negative = self._modes.reshape(2, _MODES * m, 4 * m)
        even_y, odd_y = self._modes_of_parts
        np.add(even_y, odd_y, out=positive)
        np.subtract(even_y, odd_y, out=negative)
