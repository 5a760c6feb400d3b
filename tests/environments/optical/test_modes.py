"""The pupil, and the six modes that are orthonormal on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probebench.environments.optical.modes import (
    MODE_NAMES,
    NOLL_INDICES,
    Mask,
    orthonormal_modes,
    pupil_coordinates,
    pupil_mask,
)
from probebench.environments.optical.propagation import Reals

PUPILS = [(64, 0.2), (128, 0.2), (64, 0.3), (63, 0.0), (16, 0.6)]

# Noll's (n, m, sine or cosine) of polynomials 4 to 9, from his table 1.
NOLL_TABLE = {
    4: (2, 0, "cos"),
    5: (2, 2, "sin"),
    6: (2, 2, "cos"),
    7: (3, 1, "sin"),
    8: (3, 1, "cos"),
    9: (3, 3, "sin"),
}


def noll(index: int, samples: int) -> Reals:
    """Noll's polynomial in polar form, on the square that holds the pupil."""
    n, m, which = NOLL_TABLE[index]
    x, y = pupil_coordinates(samples)
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    radial = sum(
        (-1) ** s
        * math.factorial(n - s)
        / (math.factorial(s) * math.factorial((n + m) // 2 - s) * math.factorial((n - m) // 2 - s))
        * radius ** (n - 2 * s)
        for s in range((n - m) // 2 + 1)
    )
    azimuthal = np.sin(m * angle) if which == "sin" else np.cos(m * angle)
    scale = math.sqrt(n + 1) * (1 if m == 0 else math.sqrt(2))
    polynomial: Reals = scale * radial * azimuthal
    return polynomial


def gram(left: Reals, right: Reals, mask: Mask) -> Reals:
    """Mean products over the open pupil of two stacks."""
    product: Reals = left[:, mask] @ right[:, mask].T / np.count_nonzero(mask)
    return product


@pytest.mark.parametrize(("samples", "obscuration"), PUPILS)
def test_modes_are_orthonormal_on_the_obscured_pupil(samples: int, obscuration: float) -> None:
    mask = pupil_mask(samples, obscuration)
    modes = orthonormal_modes(samples, obscuration)
    assert np.abs(gram(modes, modes, mask) - np.eye(6)).max() < 1e-12


@pytest.mark.parametrize(("samples", "obscuration"), PUPILS)
def test_modes_have_no_piston_tip_or_tilt(samples: int, obscuration: float) -> None:
    mask = pupil_mask(samples, obscuration)
    x, y = pupil_coordinates(samples)
    plane = np.array([np.ones_like(x), x, y])
    assert np.abs(gram(orthonormal_modes(samples, obscuration), plane, mask)).max() < 1e-12


@pytest.mark.parametrize(("obscuration", "worst"), [(0.2, 0.07), (0.3, 0.15)])
def test_raw_noll_polynomials_are_several_per_cent_off_on_an_obscured_pupil(
    obscuration: float, worst: float
) -> None:
    mask = pupil_mask(64, obscuration)
    raw = np.array([np.ones((64, 64)), *(noll(index, 64) for index in NOLL_INDICES)])
    products = gram(raw, raw, mask)
    assert np.abs(products - np.eye(7)).max() > worst
    assert np.abs(np.sqrt(np.diag(products)) - 1).max() > 0.03


@pytest.mark.parametrize("position", range(6))
def test_a_mode_on_a_fine_clear_pupil_is_nolls_polynomial_of_its_place(position: int) -> None:
    samples = 256
    mask = pupil_mask(samples, 0.0)
    raw = np.array([noll(index, samples) for index in NOLL_INDICES])
    likeness = gram(orthonormal_modes(samples, 0.0), raw, mask)
    # Of unit RMS to 0.2 %, so that a swapped pair or a sign would stand out.
    assert likeness[position, position] == pytest.approx(1, abs=2e-3)
    assert np.abs(np.delete(likeness[position], position)).max() < 2e-3


def test_names_follow_nolls_azimuthal_orders() -> None:
    expected = {
        (2, 0, "cos"): "defocus",
        (2, 2, "sin"): "oblique astigmatism",
        (2, 2, "cos"): "vertical astigmatism",
        (3, 1, "sin"): "vertical coma",
        (3, 1, "cos"): "horizontal coma",
        (3, 3, "sin"): "vertical trefoil",
    }
    assert list(MODE_NAMES) == [expected[NOLL_TABLE[index]] for index in NOLL_INDICES]


def test_the_first_three_modes_are_even_and_the_others_odd_under_reflection_in_the_centre() -> None:
    modes = orthonormal_modes(64, 0.2)
    reflected = modes[:, ::-1, ::-1]
    assert np.abs(reflected[:3] - modes[:3]).max() < 1e-12
    assert np.abs(reflected[3:] + modes[3:]).max() < 1e-12


def test_modes_are_zero_where_the_pupil_is_closed() -> None:
    assert not orthonormal_modes(64, 0.2)[:, ~pupil_mask(64, 0.2)].any()


def test_row_0_of_the_pupil_is_the_bottom_and_column_0_the_left() -> None:
    x, y = pupil_coordinates(8)
    assert np.array_equal(y[:, 0], (np.arange(8) - 3.5) / 4)
    assert np.array_equal(x[0], (np.arange(8) - 3.5) / 4)
    assert np.ptp(y, axis=1).max() == 0
    assert np.ptp(x, axis=0).max() == 0


@pytest.mark.parametrize("samples", [16, 17])
def test_the_pupil_is_centred_at_half_of_one_less_than_its_samples(samples: int) -> None:
    mask = pupil_mask(samples, 0.3)
    assert np.array_equal(mask, mask[::-1])
    assert np.array_equal(mask, mask[:, ::-1])
    assert np.array_equal(mask, mask.T)


@pytest.mark.parametrize("obscuration", [0.0, 0.2, 0.5])
def test_the_open_area_is_that_of_the_annulus(obscuration: float) -> None:
    samples = 512
    area = np.count_nonzero(pupil_mask(samples, obscuration)) / samples**2
    assert area == pytest.approx(np.pi / 4 * (1 - obscuration**2), rel=1e-3)
