"""The judge: what it measures, and the floor below which no estimate can be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, poisson

from probebench.environments.optical.camera import Calibration, calibration
from probebench.environments.optical.evaluator import (
    cramer_rao_floor_nm,
    evaluate,
    fisher_information,
)
from probebench.environments.optical.fixture import Instrument, incident_opd_nm
from probebench.environments.optical.linearisation import psf_and_jacobian
from probebench.environments.optical.propagation import Reals
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    DEVELOPMENT,
    INCIDENT_OPD_NM,
    PROBE_OPD_NM,
    SMALL,
    TWIN_SIGNS,
    ZERO_OPD_NM,
    config,
)

MEANS_E = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4]
RESIDUALS_OPD_NM = [INCIDENT_OPD_NM, INCIDENT_OPD_NM - np.array(PROBE_OPD_NM)]


def exact_information(mean_e: float, read_noise_e: float) -> float:
    """Fisher information on the mean of a Poisson count with Gaussian noise.

    The integral of (dp/dm)^2 / p over the reading e, p(e) = sum over k of
    Poisson(k; m) Normal(e - k; s), dPoisson(k)/dm = Poisson(k-1) - Poisson(k).
    """
    sigma = math.sqrt(mean_e + read_noise_e**2)
    below = max(-10 * read_noise_e, mean_e - 10 * sigma - 10 * read_noise_e)
    step = read_noise_e / 16
    reading = np.arange(below, mean_e + 12 * sigma + 10 * read_noise_e + 10, step)
    density, slope = np.zeros_like(reading), np.zeros_like(reading)
    reach = math.ceil(9 * read_noise_e) + 1
    for offset in range(-reach, reach + 1):
        count = np.rint(reading) + offset
        noise = norm.pdf(reading, count, read_noise_e)
        here, below_it = poisson.pmf(count, mean_e), poisson.pmf(count - 1, mean_e)
        density += here * noise
        slope += (below_it - here) * noise
    seen = density > 1e-280
    return float(np.sum(slope[seen] ** 2 / density[seen]) * step)


def taken_information(mean_e: Reals | float, read_noise_e: float) -> Reals | float:
    """What docs/physics.md states."""
    variance = mean_e + read_noise_e**2
    return 1 / variance + read_noise_e**4 / (2 * variance**4)


def largest_error(read_noise_e: float) -> float:
    """Of the stated information over the means, relative."""
    return max(
        abs(float(taken_information(m, read_noise_e)) / exact_information(m, read_noise_e) - 1)
        for m in MEANS_E
    )


def test_the_quadrature_gives_the_known_limits() -> None:
    assert exact_information(1e4, 5.0) == pytest.approx(1 / (1e4 + 25), rel=1e-6)
    # Where read noise dominates the count is Gaussian with variance m + s^2.
    expected = 1 / 400.01 + 1 / (2 * 400.01**2)
    assert exact_information(0.01, 20.0) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("read_noise_e", "within"), [(1.0, 0.11), (2.0, 0.01), (3.0, 0.0021), (4.0, 8e-4), (5.0, 4e-4)]
)
def test_the_information_of_a_pixel_is_as_exact_as_stated(
    read_noise_e: float, within: float
) -> None:
    assert within / 2 < largest_error(read_noise_e) < within


def test_without_its_second_term_the_information_would_be_twenty_times_less_exact() -> None:
    plain = max(abs(1 / (m + 9) / exact_information(m, 3.0) - 1) for m in MEANS_E)
    assert plain > 20 * largest_error(3.0)


def test_the_fisher_matrix_sums_the_information_of_all_pixels_of_all_images() -> None:
    slow = np.zeros((6, 6))
    for residual in RESIDUALS_OPD_NM:
        images = {
            sign: [
                SMALL.photons_per_exposure * SMALL.optics.psf(residual + sign * step)
                for step in 1e-3 * np.eye(6)
            ]
            for sign in (1, -1)
        }
        slopes = np.array([(a - b) / 2e-3 for a, b in zip(images[1], images[-1], strict=True)])
        mean = SMALL.photons_per_exposure * SMALL.optics.psf(residual)
        slow += np.einsum("iyx,jyx,yx->ij", slopes, slopes, taken_information(mean, 3.0))
    fisher = fisher_information(SMALL, RESIDUALS_OPD_NM)
    assert np.abs(fisher - slow).max() < 1e-6 * np.abs(slow).max()


def exact_floor_nm(camera: Calibration, residuals: list[Reals]) -> float:
    """The floor with the information of every pixel by quadrature, interpolated."""
    psf, jacobian = psf_and_jacobian(camera.optics, np.array(residuals))
    mean, slopes = camera.photons_per_exposure * psf, camera.photons_per_exposure * jacobian
    nodes = np.geomspace(mean.min(), mean.max(), 100)
    share = [
        exact_information(m, camera.read_noise_e) * (m + camera.read_noise_e**2) for m in nodes
    ]
    information = np.interp(np.log(mean), np.log(nodes), share) / (mean + camera.read_noise_e**2)
    fisher = np.einsum("kiyx,kjyx,kyx->ij", slopes, slopes, information)
    return float(np.sqrt(np.trace(np.linalg.inv(fisher))))


@pytest.mark.parametrize(
    ("photons", "read_noise_e", "off", "within"),
    [
        (30_000, 3.0, 0.0, 1e-5),
        (30_000, 1.0, 0.0, 1e-4),
        (30_000, 0.1, -0.002, 5e-4),
        (1000, 0.1, -0.04, 5e-3),
    ],
)
def test_the_floor_is_that_of_the_exact_information_to_the_stated_accuracy(
    photons: int, read_noise_e: float, off: float, within: float
) -> None:
    camera = replace(DEVELOPMENT, photons_per_exposure=photons, read_noise_e=read_noise_e)
    floor_nm, _ = cramer_rao_floor_nm(camera, RESIDUALS_OPD_NM)
    expected = (1 + off) * exact_floor_nm(camera, RESIDUALS_OPD_NM)
    assert floor_nm == pytest.approx(expected, rel=within)


# -- where there is a floor --------------------------------------------------------------


@pytest.mark.parametrize(
    "residual_opd_nm",
    [np.zeros(6), np.array([0.0, 0, 0, 50, 30, 20])],
    ids=["no aberration", "odd modes alone"],
)
def test_one_image_of_a_wavefront_without_even_modes_sets_no_floor(residual_opd_nm: Reals) -> None:
    # To first order an even mode changes nothing of such an image.
    floor_nm, reason = cramer_rao_floor_nm(DEVELOPMENT, [residual_opd_nm])
    assert floor_nm is None
    assert reason == "the images leave a combination of the modes unmeasured"


def test_a_probe_beside_it_sets_one() -> None:
    flat = np.zeros(6)
    floor_nm, reason = cramer_rao_floor_nm(DEVELOPMENT, [flat, flat - np.array(PROBE_OPD_NM)])
    assert reason is None
    assert floor_nm is not None
    assert 1 < floor_nm < 2


def test_one_image_of_a_general_wavefront_sets_a_floor_that_is_blind_to_the_twin() -> None:
    # The bound is local: it cannot know of a second wavefront with the same image.
    floors = [
        cramer_rao_floor_nm(DEVELOPMENT, [opd_nm])[0]
        for opd_nm in (INCIDENT_OPD_NM, TWIN_SIGNS * INCIDENT_OPD_NM)
    ]
    assert floors[0] is not None
    assert floors[0] == pytest.approx(floors[1], rel=1e-9)


def test_more_images_lower_the_floor() -> None:
    one, _ = cramer_rao_floor_nm(DEVELOPMENT, RESIDUALS_OPD_NM[:1])
    two, _ = cramer_rao_floor_nm(DEVELOPMENT, RESIDUALS_OPD_NM)
    eight, _ = cramer_rao_floor_nm(DEVELOPMENT, RESIDUALS_OPD_NM * 4)
    assert one is not None
    assert two is not None
    assert two < one
    assert eight == pytest.approx(two / 2, rel=1e-12)


def test_the_floor_falls_as_one_over_the_root_of_the_photons_where_they_outshine_the_noise() -> (
    None
):
    floors = [
        cramer_rao_floor_nm(replace(DEVELOPMENT, photons_per_exposure=n), RESIDUALS_OPD_NM)[0]
        or 0.0
        for n in (10**3, 10**6, 10**8)
    ]
    assert floors[1] / floors[2] == pytest.approx(10, rel=0.03)
    # With few photons it falls faster, since read noise then matters too.
    assert floors[0] / floors[1] > 1.5 * math.sqrt(1000)


# -- an evaluation -----------------------------------------------------------------------


def test_an_evaluation_holds_the_figures_of_the_final_command_and_of_the_images() -> None:
    given, camera, instrument = config(), calibration(config()), Instrument(config())
    incident = incident_opd_nm(given)
    commands = [*COMMANDS_OPD_NM, (0.9 * incident).tolist()]
    judged = evaluate(given, commands, (incident + np.array([3, 0, 0, 0, 4, 0])).tolist())
    residuals = [incident - np.array(command) for command in commands]
    rms_nm = [float(np.linalg.norm(residual)) for residual in residuals]
    assert judged["residual_wfe_nm_rms"] == pytest.approx(5.0, rel=1e-9)
    assert judged["strehl"] == pytest.approx(camera.optics.strehl(np.array([3.0, 0, 0, 0, 4, 0])))
    assert judged["strehl_marechal"] == pytest.approx(math.exp(-((2 * math.pi * 5 / 850) ** 2)))
    assert judged["zero_command_wfe_nm_rms"] == pytest.approx(rms_nm[0])
    assert judged["measured_wfe_nm_rms"] == pytest.approx(rms_nm)
    assert judged["best_measured_exposure_index"] == 2
    assert judged["best_measured_wfe_nm_rms"] == pytest.approx(0.1 * rms_nm[0])
    assert judged["cramer_rao_floor_nm_rms"] == cramer_rao_floor_nm(camera, residuals)[0]
    assert judged["cramer_rao_floor_reason"] is None
    assert judged["realised_photons"] == [
        instrument.realised_photons(command, index) for index, command in enumerate(commands)
    ]
    lost = [30_000 - instrument.expected(command).sum() for command in commands]
    assert judged["expected_photons_outside_detector"] == pytest.approx(lost)


def test_a_perfect_correction_has_no_residual_and_a_strehl_of_1() -> None:
    judged = evaluate(config(), COMMANDS_OPD_NM, incident_opd_nm(config()).tolist())
    assert judged["residual_wfe_nm_rms"] == 0
    assert judged["strehl"] == judged["strehl_marechal"] == 1


def test_the_zero_command_is_judged_even_where_it_was_not_exposed() -> None:
    judged = evaluate(config(), [PROBE_OPD_NM], ZERO_OPD_NM)
    assert judged["residual_wfe_nm_rms"] == judged["zero_command_wfe_nm_rms"]
    assert judged["best_measured_exposure_index"] == 0
    assert judged["best_measured_wfe_nm_rms"] != judged["zero_command_wfe_nm_rms"]
