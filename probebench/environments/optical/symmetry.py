"""Transforms of a quarter of the pupil to a quarter of the detector.

Pupil grid and detector are symmetric about both axes.  So a pupil field is the
sum of four parts, each even or odd along x and along y; an even part
transforms by cosines, an odd one by -i times sines, over half as many samples
to half as many pixels.  Real matrices a quarter of the size do what the
complex ones of a matrix Fourier transform do.

Axes are named: p, parity along x or y (0 even, 1 odd); s, sign along x or y
(0 positive half, 1 negative); c, real and imaginary part; half axes run
outwards from the centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Reals: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Grid: TypeAlias = np.ndarray[tuple[Any, ...], Any]
Indices: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
Parity: TypeAlias = tuple[int, int]  # along x, along y

HALVES: tuple[Parity, ...] = ((0, 0), (0, 1), (1, 0), (1, 1))
_FACTORS = (1, -1j, -1)  # of a part that is odd along no axis, one, both


def signs(parity: Parity) -> Reals:
    """Sign of a function of this parity in the four quadrants, (4,)."""
    return np.array([(-1.0) ** (parity[0] * sx + parity[1] * sy) for sx, sy in HALVES])


def unfold() -> Reals:
    """From parts to quadrants, (4 quadrants, 4 parities)."""
    return np.stack([signs(parity) for parity in HALVES], axis=1)


def fold() -> Reals:
    """From quadrants to parts, ((px, py, c), (c, sx, sy)): (8, 8).

    A part that is odd along n axes carries the factor (-i)^n of its transform.
    """
    matrix = np.empty((4, 2, 2, 4))
    for row, parity in enumerate(HALVES):
        factor = complex(_FACTORS[sum(parity)])
        rotation = np.array([[factor.real, -factor.imag], [factor.imag, factor.real]])
        matrix[row] = rotation[:, :, np.newaxis] * signs(parity)
    return matrix.reshape(8, 8)


def quadrant(grid: Grid) -> Grid:
    """The part of (..., n, n) at non-negative y and x."""
    return grid[..., grid.shape[-2] // 2 :, grid.shape[-1] // 2 :]


def pixel_quadrants(pixels: int) -> Indices:
    """For each pixel of (n, n) its place in (sx, sy, half, half), flattened."""
    along = 2 * np.arange(pixels) - (pixels - 1)
    half = (pixels + 1) // 2
    negative, outwards = (along < 0).astype(np.intp), np.abs(along) // 2
    quadrants = negative[:, np.newaxis] + 2 * negative
    places: Indices = (quadrants * half + outwards[:, np.newaxis]) * half + outwards
    return places


@dataclass(frozen=True)
class HalfAxis:
    """Half of one axis of the pupil, and of the detector.

    position: (h,) of its samples, in pupil diameters.
    pixel: (m,) of its pixels, in lambda/D.
    """

    position: Reals
    pixel: Reals

    @classmethod
    def of(cls, samples: int, pixels: int, samples_per_lambda_over_d: float) -> HalfAxis:
        """The non-negative half of symmetric grids."""
        position: Reals = (np.arange(samples) - (samples - 1) / 2) / samples
        pixel = (np.arange(pixels) - (pixels - 1) / 2) / np.float64(samples_per_lambda_over_d)
        return cls(position[samples // 2 :], pixel[pixels // 2 :])

    def kernel(self, parity: int, power: int = 0) -> Reals:
        """Matrix (h, m) that transforms the part of a parity, times r^power.

        r is the position in pupil radii.  An odd power turns an even part into
        an odd one and back.  The transform then has another factor: -i for
        either part once the sign of the second is turned, as it is here.
        """
        argument = 2 * np.pi * np.outer(self.position, self.pixel)
        wave = np.sin(argument) if (parity + power) % 2 else np.cos(argument)
        sign = -1 if parity and power % 2 else 1
        # The sample in the centre is in both halves.
        weight = np.where(self.position == 0, 0.5, 1.0) * sign * (2 * self.position) ** power
        return weight[:, np.newaxis] * wave
