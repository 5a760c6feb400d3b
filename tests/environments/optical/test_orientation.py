"""Signs and directions: which way the light goes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import jv

from probebench.environments.optical.disclosure import COMMAND_CONVENTION, ORIENTATION
from probebench.environments.optical.linearisation import psf_and_jacobian
from probebench.environments.optical.modes import pupil_coordinates, pupil_mask
from probebench.environments.optical.propagation import Optics, Reals
from tests.environments.optical.reference import plain_psf
from tests.environments.optical.scenes import WAVELENGTH_NM

PIXELS = 33
CENTRE = (PIXELS - 1) / 2
PER_LAMBDA = 2.0
NO_OPD = np.zeros(6)
VERTICAL_COMA, HORIZONTAL_COMA, TREFOIL = 3, 4, 5


def tilted(along_y: float, along_x: float, kernel_sign: int = -1) -> Reals:
    """Image of a clear pupil under a tilt of that many pixels.

    The camera has no tilt among its modes, so the reference draws it; the last
    test of this part ties the camera to the reference.
    """
    x, y = pupil_coordinates(64)
    # From rim to rim one wavelength moves the spot by lambda/D.
    opd_nm = WAVELENGTH_NM / 2 / PER_LAMBDA * (along_y * y + along_x * x)
    return plain_psf(opd_nm, pupil_mask(64, 0.2), WAVELENGTH_NM, PIXELS, PER_LAMBDA, kernel_sign)


def spot(image: Reals) -> tuple[int, int]:
    """Row and column of the brightest pixel, from the optical axis."""
    row, column = np.unravel_index(np.argmax(image), image.shape)
    return int(row - CENTRE), int(column - CENTRE)


def test_a_tilt_that_grows_with_plus_y_moves_the_spot_to_higher_rows() -> None:
    assert spot(tilted(3, 0)) == (3, 0)
    assert spot(tilted(-3, 0)) == (-3, 0)


def test_a_tilt_that_grows_with_plus_x_moves_the_spot_to_higher_columns() -> None:
    assert spot(tilted(0, 3)) == (0, 3)


def test_a_tilt_moves_the_whole_image_and_changes_nothing_else() -> None:
    flat, moved = tilted(0, 0), tilted(3, -2)
    assert np.abs(moved[3:, :-2] - flat[:-3, 2:]).max() < 1e-14


def test_with_the_kernel_of_the_other_sign_the_spot_would_move_to_lower_rows() -> None:
    assert spot(tilted(3, 0, kernel_sign=+1)) == (-3, 0)


OPD_NM = np.array([60.0, -30, 20, 40, -25, 10])


def by_the_formula(opd_nm: Reals, kernel_sign: int) -> Reals:
    system = Optics(WAVELENGTH_NM, 32, 0.2, PIXELS, PER_LAMBDA)
    whole_nm = np.tensordot(opd_nm, system.modes, axes=1)
    return plain_psf(whole_nm, system.pupil, WAVELENGTH_NM, PIXELS, PER_LAMBDA, kernel_sign)


def test_the_camera_has_the_signs_under_which_a_tilt_moves_the_spot_so() -> None:
    image = Optics(WAVELENGTH_NM, 32, 0.2, PIXELS, PER_LAMBDA).psf(OPD_NM)
    assert np.abs(by_the_formula(OPD_NM, -1) - image).max() < 1e-15
    assert np.abs(by_the_formula(OPD_NM, +1) - image).max() > 1e-3
    assert np.abs(by_the_formula(-OPD_NM, -1) - image).max() > 1e-3


def test_flipping_both_signs_at_once_would_change_no_image() -> None:
    # Hence only their product is physics, and the tilt is what tells it.
    image = Optics(WAVELENGTH_NM, 32, 0.2, PIXELS, PER_LAMBDA).psf(OPD_NM)
    assert np.abs(by_the_formula(-OPD_NM, +1) - image).max() < 1e-15


# -- coma and trefoil ---------------------------------------------------------------


def nolls_transform(mode: int) -> Reals:
    """Fourier transform of an odd mode on a clear pupil over i, on the detector.

    Noll 1976, equation 8, for the kernel exp(-2 pi i k r), k in cycles per
    radius: sqrt(n+1) J_(n+1)(2 pi k)/(pi k) sqrt(2) times sin or cos of m phi,
    times (-1)^((n-m)/2) (-i)^m.
    """
    along = (np.arange(PIXELS) - CENTRE) / PER_LAMBDA / 2
    v, u = np.meshgrid(along, along, indexing="ij")
    k, angle = np.hypot(u, v), np.arctan2(v, u)
    m, azimuthal = {
        VERTICAL_COMA: (1, np.sin(angle)),
        HORIZONTAL_COMA: (1, np.cos(angle)),
        TREFOIL: (3, np.sin(3 * angle)),
    }[mode]
    safe = np.where(k == 0, 1.0, k)
    radial = np.where(k == 0, 0.0, jv(4, 2 * np.pi * safe) / (np.pi * safe))
    sign = (-1) ** ((3 - m) // 2) * ((-1j) ** m / 1j).real
    transform: Reals = np.sqrt(8) * sign * radial * azimuthal
    return transform


def first_order(mode: int) -> Reals:
    """Change of the image per nm of an odd mode, from the Bessel functions.

    F = FT(1) + i (2 pi/lambda) c FT(Z), FT(1) real and FT(Z) i times real.
    """
    along = (np.arange(PIXELS) - CENTRE) / PER_LAMBDA / 2
    k = np.hypot(*np.meshgrid(along, along))
    safe = np.where(k == 0, 1.0, k)
    flat = np.where(k == 0, 1.0, jv(1, 2 * np.pi * safe) / (np.pi * safe))
    area_share = np.pi / 4 / PER_LAMBDA**2
    change: Reals = -area_share * 2 * (2 * np.pi / WAVELENGTH_NM) * flat * nolls_transform(mode)
    return change


@pytest.mark.parametrize("mode", [VERTICAL_COMA, HORIZONTAL_COMA, TREFOIL])
def test_a_little_of_an_odd_mode_changes_the_image_as_nolls_transform_says(mode: int) -> None:
    system = Optics(WAVELENGTH_NM, 256, 0.0, PIXELS, PER_LAMBDA)
    change = psf_and_jacobian(system, NO_OPD)[1][mode]
    expected = first_order(mode)
    assert np.abs(change - expected).max() < 0.01 * np.abs(expected).max()
    assert np.abs(change + expected).max() > np.abs(expected).max()


@pytest.mark.parametrize(
    ("mode", "towards"), [(VERTICAL_COMA, "rows"), (HORIZONTAL_COMA, "columns")]
)
def test_the_tail_of_positive_coma_points_to_plus(mode: int, towards: str) -> None:
    # Geometrically: (3 r^2 - 2) y slopes by -2 at the centre, where the head is
    # made, and by +7 at the top of the rim, where the end of the tail is.
    opd_nm = 80 * np.eye(6)[mode]
    image = Optics(WAVELENGTH_NM, 64, 0.2, PIXELS, PER_LAMBDA).psf(opd_nm)
    profile = image.sum(axis=1 if towards == "rows" else 0)
    across = image.sum(axis=0 if towards == "rows" else 1)
    position = np.arange(PIXELS) - CENTRE
    near = np.abs(position) <= 8
    assert np.argmax(profile) <= CENTRE
    assert skewness(profile[near], position[near]) > 0.1
    assert abs(skewness(across[near], position[near])) < 1e-9


def test_the_tail_of_negative_coma_points_the_other_way() -> None:
    image = Optics(WAVELENGTH_NM, 64, 0.2, PIXELS, PER_LAMBDA).psf(-80 * np.eye(6)[VERTICAL_COMA])
    position = np.arange(PIXELS) - CENTRE
    near = np.abs(position) <= 8
    assert skewness(image.sum(axis=1)[near], position[near]) < -0.1


def test_a_corner_of_the_core_of_positive_trefoil_points_up() -> None:
    assert brightest_directions(80, pixels_from_axis=6) == [90, 210, 330]
    assert brightest_directions(-80, pixels_from_axis=6) == [30, 150, 270]


def test_the_bright_spots_of_the_first_ring_of_positive_trefoil_lie_between_the_corners() -> None:
    # The flat amplitude has changed its sign there.
    assert brightest_directions(80, pixels_from_axis=13) == [30, 150, 270]
    assert brightest_directions(-80, pixels_from_axis=13) == [90, 210, 330]


def test_vertical_astigmatism_with_defocus_of_its_sign_draws_the_image_out_along_x() -> None:
    # The slopes along x of 2 r^2 - 1 and x^2 - y^2 add, those along y cancel.
    rows, columns, _ = second_moments(np.array([60.0, 0, 60, 0, 0, 0]))
    assert columns > 1.5 * rows
    rows, columns, _ = second_moments(np.array([60.0, 0, -60, 0, 0, 0]))
    assert rows > 1.5 * columns


@pytest.mark.parametrize("sign", [1, -1])
def test_oblique_astigmatism_with_defocus_of_its_sign_draws_the_image_out_along_the_diagonal(
    sign: int,
) -> None:
    rows, columns, product = second_moments(np.array([60.0, sign * 60, 0, 0, 0, 0]))
    assert rows == pytest.approx(columns)
    assert sign * product > 0.2 * rows


def skewness(profile: Reals, position: Reals) -> float:
    """Third central moment over the cube of the width."""
    weight = profile / profile.sum()
    from_mean = position - weight @ position
    return float(weight @ from_mean**3 / (weight @ from_mean**2) ** 1.5)


def brightest_directions(trefoil_nm: float, pixels_from_axis: int) -> list[int]:
    """Degrees from +x to +y of the threefold maximum on a ring, 8 pixels per lambda/D."""
    image = Optics(WAVELENGTH_NM, 64, 0.2, 65, 8.0).psf(trefoil_nm * np.eye(6)[TREFOIL])
    angle = np.radians(np.arange(360))
    row, column = (
        np.rint(32 + pixels_from_axis * wave(angle)).astype(int) for wave in (np.sin, np.cos)
    )
    # The third harmonic around the ring peaks there.
    phase = np.angle(np.sum(image[row, column] * np.exp(3j * angle)))
    first = round(float(np.degrees(phase)) / 3) % 120
    return [first + 120 * turn for turn in range(3)]


def second_moments(opd_nm: Reals) -> tuple[float, float, float]:
    """Of rows, of columns, and their product, within the core of the image."""
    image = Optics(WAVELENGTH_NM, 64, 0.2, PIXELS, PER_LAMBDA).psf(opd_nm)
    position = np.arange(PIXELS) - CENTRE
    y, x = np.meshgrid(position, position, indexing="ij")
    weight = image * (np.hypot(x, y) <= 6)
    weight /= weight.sum()
    rows, columns, product = (float(np.sum(weight * term)) for term in (y * y, x * x, x * y))
    return rows, columns, product


def test_the_words_of_the_request_are_those_of_these_tests() -> None:
    assert "grows with +y moves the image to +y, towards higher rows" in ORIENTATION
    assert "row and column (n-1)/2" in ORIENTATION
    assert "Residual OPD = incident OPD - commanded OPD" in COMMAND_CONVENTION
    assert "surface moves by half the commanded OPD" in COMMAND_CONVENTION
