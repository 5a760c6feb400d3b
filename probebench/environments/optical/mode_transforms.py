"""The transforms of mode times pupil field, all six in one.

A mode is a polynomial: sum of terms y^b x^a.  The powers multiply the kernels
of the transform instead of the field, so that the six fields share four
transforms along x, and no product of a mode with a field is ever formed.
"""

from __future__ import annotations

import numpy as np

from probebench.environments.optical.modes import MODE_TERMS, Terms
from probebench.environments.optical.symmetry import HalfAxis, Parity, Reals

MODE_PARITIES: tuple[Parity, ...] = tuple((of_x % 2, of_y % 2) for ((of_y, of_x), *_) in MODE_TERMS)
# The order of the transforms: modes of even powers of x, then of odd ones,
# such that those which are odd along one axis alone stand together.
ORDER = (0, 2, 3, 5, 4, 1)
ODD_ALONG_ONE_AXIS = slice(2, 5)
EVEN_IN_X = 4  # so many have even powers of x
POWERS_OF_X = (0, 2, 1, 3)


def powers_along_x(axis: HalfAxis) -> Reals:
    """Matrices (px, h, 4 m) that transform a part times each of ``POWERS_OF_X``."""
    return np.stack(
        [np.hstack([axis.kernel(parity, power) for power in POWERS_OF_X]) for parity in (0, 1)]
    )


def fields_along_y(axis: HalfAxis, coefficients: list[Terms]) -> tuple[Reals, Reals]:
    """Matrices (py, 4 m, 2 h) and (py, 2 m, 2 h): from powers of x to whole fields.

    The first takes the powers 0 and 2, the second 1 and 3.
    coefficients: of the terms of each of the six modes.
    """
    modes = [coefficients[mode] for mode in ORDER]
    even, odd = modes[:EVEN_IN_X], modes[EVEN_IN_X:]
    return _along_y(axis, even, POWERS_OF_X[:2]), _along_y(axis, odd, POWERS_OF_X[2:])


def _along_y(axis: HalfAxis, fields: list[Terms], powers: tuple[int, ...]) -> Reals:
    def matrix(terms: Terms, parity: int, power_of_x: int) -> Reals:
        shares = [
            coefficient * axis.kernel(parity, y).T
            for (y, x), coefficient in terms.items()
            if x == power_of_x
        ]
        return sum(shares, np.zeros((len(axis.pixel), len(axis.position))))

    return np.stack(
        [
            np.block([[matrix(terms, parity, power) for power in powers] for terms in fields])
            for parity in (0, 1)
        ]
    )
