"""Sobol's points in 27 dimensions, as 32-bit integers.

SciPy has them too, and the tests hold the two equal; but importing its module
takes longer than scoring all candidates of a search.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Bits: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]

BITS = 32

# For every dimension after the first: the inner coefficients of a primitive
# polynomial, and the initial numbers, of which there are as many as its degree
# (S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30, 2635, 2008).
_POLYNOMIALS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (0, (1,)),
    (1, (1, 3)),
    (1, (1, 3, 1)),
    (2, (1, 1, 1)),
    (1, (1, 1, 3, 3)),
    (4, (1, 3, 5, 13)),
    (2, (1, 1, 5, 5, 17)),
    (4, (1, 1, 5, 5, 5)),
    (7, (1, 1, 7, 11, 19)),
    (11, (1, 1, 5, 1, 1)),
    (13, (1, 1, 1, 3, 11)),
    (14, (1, 3, 5, 5, 31)),
    (1, (1, 3, 3, 9, 7, 49)),
    (13, (1, 1, 1, 15, 21, 21)),
    (16, (1, 3, 1, 13, 27, 49)),
    (19, (1, 1, 1, 15, 7, 5)),
    (22, (1, 3, 1, 15, 13, 25)),
    (25, (1, 1, 5, 5, 19, 61)),
    (1, (1, 3, 7, 11, 23, 15, 103)),
    (4, (1, 3, 7, 13, 13, 15, 69)),
    (7, (1, 1, 3, 13, 7, 35, 63)),
    (8, (1, 3, 5, 9, 1, 25, 53)),
    (14, (1, 3, 1, 13, 9, 35, 107)),
    (19, (1, 3, 1, 5, 27, 61, 31)),
    (21, (1, 1, 5, 11, 19, 41, 61)),
    (28, (1, 3, 5, 3, 3, 13, 69)),
)

DIMENSIONS = 1 + len(_POLYNOMIALS)


def sobol_points(count: int) -> Bits:
    """The first points in the order of the Gray code, (count, 27), in units of 2^-32."""
    index = np.arange(count, dtype=np.uint32)
    gray = index ^ (index >> np.uint32(1))
    points = np.zeros((count, DIMENSIONS), dtype=np.uint32)
    for bit, directions in enumerate(_direction_numbers()[: max(count - 1, 0).bit_length()]):
        points ^= ((gray >> np.uint32(bit)) & np.uint32(1))[:, np.newaxis] * directions
    return points


def _direction_numbers() -> Bits:
    """Direction numbers, (32, 27), of each bit of the index and each dimension."""
    columns = [[1 << (BITS - 1 - bit) for bit in range(BITS)]]
    columns += [_column(inner, initial) for inner, initial in _POLYNOMIALS]
    return np.array(columns, dtype=np.uint32).T


def _column(inner: int, initial: tuple[int, ...]) -> list[int]:
    degree = len(initial)
    numbers = [value << (BITS - 1 - bit) for bit, value in enumerate(initial)]
    for bit in range(degree, BITS):
        value = numbers[bit - degree] ^ (numbers[bit - degree] >> degree)
        for term in range(1, degree):
            if inner >> (degree - 1 - term) & 1:
                value ^= numbers[bit - term]
        numbers.append(value)
    return numbers
