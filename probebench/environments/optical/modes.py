"""The pupil and the six modes that are orthonormal on it.

A pupil of N samples across has sample i at (i - (N-1)/2) / (N/2) radii, rows
along +y and columns along +x, row 0 at the bottom.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Grid: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Mask: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
Terms: TypeAlias = dict[tuple[int, int], float]  # coefficient of each power of (y, x)
Stack: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]

NOLL_INDICES = (4, 5, 6, 7, 8, 9)
MODE_NAMES = (
    "defocus",
    "oblique astigmatism",
    "vertical astigmatism",
    "vertical coma",
    "horizontal coma",
    "vertical trefoil",
)

# Powers (of y, of x) of the terms of each mode, all of one parity: Noll's
# polynomials and what orthogonality on an obscured pupil adds to them.
MODE_TERMS = (
    ((0, 0), (2, 0), (0, 2)),
    ((1, 1),),
    ((2, 0), (0, 2)),
    ((1, 0), (3, 0), (1, 2)),
    ((0, 1), (0, 3), (2, 1)),
    ((1, 0), (3, 0), (1, 2)),
)


def pupil_coordinates(samples: int) -> tuple[Grid, Grid]:
    """Give x and y of every sample, (samples, samples) float64, in pupil radii."""
    along = (np.arange(samples) - (samples - 1) / 2) / (samples / 2)
    y, x = np.meshgrid(along, along, indexing="ij")
    return x, y


def pupil_mask(samples: int, obscuration: float) -> Mask:
    """The open samples of the annulus, (samples, samples) bool.

    A sample is open when its centre lies between the obscuration and the rim.
    """
    x, y = pupil_coordinates(samples)
    radius = np.hypot(x, y)
    return (radius >= obscuration) & (radius <= 1)


def orthonormal_modes(samples: int, obscuration: float) -> Stack:
    """Six modes, (6, samples, samples) float64, zero outside the pupil.

    Noll's Zernike polynomials 4 to 9 (Noll 1976, J. Opt. Soc. Am. 66, 207),
    Gram-Schmidt on the open samples against piston, tip, tilt and one another
    in Noll's order, each scaled to unit RMS there.  On the obscured, pixelated
    pupil the polynomials themselves are neither orthogonal nor of unit RMS.
    """
    mask = pupil_mask(samples, obscuration)
    x, y = pupil_coordinates(samples)
    basis: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    for polynomial in _noll_1_to_9(x[mask], y[mask]):
        remainder = polynomial
        # Twice, because once leaves rounding of the size of what it removed.
        for vector in basis * 2:
            remainder = remainder - np.mean(remainder * vector) * vector
        basis.append(remainder / np.sqrt(np.mean(remainder**2)))
    modes = np.zeros((len(NOLL_INDICES), samples, samples))
    modes[:, mask] = basis[3:]
    return modes


def polynomial_coefficients(modes: Stack, obscuration: float) -> list[Terms]:
    """Coefficient of each of a mode's terms, in powers of pupil radii.

    modes: (6, samples, samples) of ``orthonormal_modes``; they are polynomials
        on the open pupil, so that the least squares have no residual.
    """
    samples = modes.shape[-1]
    x, y = pupil_coordinates(samples)
    mask = pupil_mask(samples, obscuration)
    coefficients = []
    for mode, terms in zip(modes, MODE_TERMS, strict=True):
        powers = np.stack([y[mask] ** of_y * x[mask] ** of_x for of_y, of_x in terms], axis=1)
        solution = np.linalg.lstsq(powers, mode[mask], rcond=None)[0]
        coefficients.append(dict(zip(terms, map(float, solution), strict=True)))
    return coefficients


def _noll_1_to_9(
    x: np.ndarray[tuple[int], np.dtype[np.float64]],
    y: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Noll's polynomials in Cartesian form, angle measured from +x to +y."""
    r2 = x**2 + y**2
    return [
        np.ones_like(x),
        2 * x,
        2 * y,
        np.sqrt(3) * (2 * r2 - 1),
        np.sqrt(6) * 2 * x * y,
        np.sqrt(6) * (x**2 - y**2),
        np.sqrt(8) * (3 * r2 - 2) * y,
        np.sqrt(8) * (3 * r2 - 2) * x,
        np.sqrt(8) * (3 * x**2 - y**2) * y,
    ]
