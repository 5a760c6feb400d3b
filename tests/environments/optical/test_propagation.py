"""From pupil to detector: the image, its light, its derivatives, and figures of the pupil."""

from __future__ import annotations

import cmath

import numpy as np
import pytest
from scipy.special import j1
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from probebench.environments.optical.linearisation import Linearisation, psf_and_jacobian
from probebench.environments.optical.propagation import (
    Imaging,
    Optics,
    Reals,
    one_blas_thread,
    optics,
)
from tests.environments.optical.reference import plain_jacobian, plain_psf
from tests.environments.optical.scenes import (
    DEVELOPMENT,
    INCIDENT_OPD_NM,
    PROBE_OPD_NM,
    SMALL,
    TWIN_SIGNS,
    WAVELENGTH_NM,
    wavefront,
)

NO_OPD = np.zeros(6)


def radius_in_lambda_over_d(pixels: int, samples_per_lambda_over_d: float) -> Reals:
    """Distance of each pixel's centre from the axis."""
    along = (np.arange(pixels) - (pixels - 1) / 2) / samples_per_lambda_over_d
    radius: Reals = np.hypot(*np.meshgrid(along, along))
    return radius


def airy(pixels: int, samples_per_lambda_over_d: float, obscuration: float) -> Reals:
    """Share of the light per pixel behind an annulus, from the Bessel function.

    Amplitude [2 J1(pi k)/(pi k) - eps^2 2 J1(pi eps k)/(pi eps k)] / (1 - eps^2)
    at k lambda/D; on the axis the open area in D^2, per (lambda/D)^2.
    """
    k = radius_in_lambda_over_d(pixels, samples_per_lambda_over_d)

    def jinc(argument: Reals) -> Reals:
        safe = np.where(argument == 0, 1.0, argument)
        value: Reals = np.where(argument == 0, 1.0, 2 * j1(safe) / safe)
        return value

    amplitude = jinc(np.pi * k) - obscuration**2 * jinc(np.pi * obscuration * k)
    amplitude /= 1 - obscuration**2
    area = np.pi / 4 * (1 - obscuration**2)
    pattern: Reals = area * amplitude**2 / samples_per_lambda_over_d**2
    return pattern


def airy_error(samples: int, obscuration: float, true_obscuration: float) -> float:
    """Largest difference from the Airy pattern, as a share of its peak."""
    image = Optics(WAVELENGTH_NM, samples, obscuration, 33, 2.0).psf(NO_OPD)
    pattern = airy(33, 2.0, true_obscuration)
    return float(np.abs(image - pattern).max() / pattern.max())


@pytest.mark.parametrize("obscuration", [0.0, 0.2, 0.3])
@pytest.mark.parametrize("samples", [32, 64, 128, 256, 512])
def test_the_image_without_aberration_is_the_airy_pattern_of_the_annulus(
    samples: int, obscuration: float
) -> None:
    # The stepped rim of a sampled disc has an area error of the order N^-1.5.
    assert airy_error(samples, obscuration, obscuration) < 3 * samples**-1.5


def test_the_airy_pattern_of_another_obscuration_is_not_met() -> None:
    assert airy_error(512, 0.2, 0.2) < 3e-4
    assert airy_error(512, 0.2, 0.21) > 3e-3


@pytest.mark.parametrize(("samples", "pixels", "per_lambda"), [(16, 8, 2.0), (17, 9, 1.3)])
def test_the_transform_is_the_slow_sum_over_the_pupil(
    samples: int, pixels: int, per_lambda: float
) -> None:
    system = Optics(WAVELENGTH_NM, samples, 0.3, pixels, per_lambda)
    opd_nm = np.tensordot(INCIDENT_OPD_NM, system.modes, axes=1)
    open_samples = [tuple(map(int, pair)) for pair in np.argwhere(system.pupil)]
    period = samples * per_lambda
    for row, column in np.ndindex(pixels, pixels):
        v, u = (row - (pixels - 1) / 2) / per_lambda, (column - (pixels - 1) / 2) / per_lambda
        field = sum(
            cmath.exp(
                2j * cmath.pi * opd_nm[i, j] / WAVELENGTH_NM
                - 2j
                * cmath.pi
                * (v * (i - (samples - 1) / 2) + u * (j - (samples - 1) / 2))
                / samples
            )
            for i, j in open_samples
        )
        share = abs(field) ** 2 / len(open_samples) / period**2
        assert system.psf(INCIDENT_OPD_NM)[row, column] == pytest.approx(share, rel=1e-10)


GEOMETRIES = [
    (64, 0.2, 32, 2.0),
    (128, 0.2, 64, 3.0),
    (64, 0.0, 33, 8.0),
    (33, 0.3, 12, 2.0),
    (17, 0.6, 9, 1.3),
    (16, 0.1, 11, 1.0),
]


@pytest.mark.parametrize(("samples", "obscuration", "pixels", "per_lambda"), GEOMETRIES)
def test_image_and_jacobian_are_those_of_the_formula_without_symmetry(
    samples: int, obscuration: float, pixels: int, per_lambda: float
) -> None:
    system = Optics(WAVELENGTH_NM, samples, obscuration, pixels, per_lambda)
    for seed in range(3):
        opd_nm = wavefront(seed, 150.0)
        whole_nm = np.tensordot(opd_nm, system.modes, axes=1)
        image = plain_psf(whole_nm, system.pupil, WAVELENGTH_NM, pixels, per_lambda)
        slopes = plain_jacobian(system, opd_nm, WAVELENGTH_NM, pixels, per_lambda)
        ours, jacobian = psf_and_jacobian(system, opd_nm)
        assert np.abs(ours - image).max() < 1e-14 * image.max()
        assert np.abs(system.psf(opd_nm) - image).max() < 1e-14 * image.max()
        for slope, mine in zip(slopes, jacobian, strict=True):
            assert np.abs(mine - slope).max() < 1e-13 * np.abs(slope).max()
        # Seven digits of the derivatives, as the fit takes them, and all of the image.
        imaging, short = Imaging(system, 1), Linearisation(system, np.float32)
        assert np.array_equal(imaging.images(opd_nm[np.newaxis])[0], ours)
        of_the_fit = short.derivatives(imaging.parts[0], imaging.fields[0])
        assert np.abs(of_the_fit - slopes).max() < 2e-6 * np.abs(slopes).max()
        assert of_the_fit.dtype == np.float32


def test_a_phase_of_half_a_turn_is_no_obstacle_to_the_tangent_of_its_half() -> None:
    # tan(phase / 2) has its poles there; rounding keeps it finite.
    system = Optics(WAVELENGTH_NM, 64, 0.2, 32, 2.0)
    for turns in (0.5, 1.0, 1.5, 40.5):
        scale = turns * WAVELENGTH_NM / system.modes[0].max()
        opd_nm = scale * np.eye(6)[0]
        whole_nm = np.tensordot(opd_nm, system.modes, axes=1)
        image = plain_psf(whole_nm, system.pupil, WAVELENGTH_NM, 32, 2.0)
        assert np.abs(system.psf(opd_nm) - image).max() < 1e-12 * image.max()


@pytest.mark.parametrize(("samples", "per_lambda"), [(32, 2.0), (24, 3.0), (20, 1.0)])
def test_all_light_over_a_whole_period_of_the_image_sums_to_1(
    samples: int, per_lambda: float
) -> None:
    whole = Optics(WAVELENGTH_NM, samples, 0.2, int(samples * per_lambda), per_lambda)
    for opd_nm in (NO_OPD, INCIDENT_OPD_NM, wavefront(1, 300)):
        assert whole.psf(opd_nm).sum() == pytest.approx(1, abs=1e-12)


def test_the_detector_misses_the_light_that_falls_outside_it() -> None:
    whole = Optics(WAVELENGTH_NM, 64, 0.2, 128, 2.0).psf(INCIDENT_OPD_NM)
    on_detector = DEVELOPMENT.optics.psf(INCIDENT_OPD_NM)
    inside = slice(48, 80)
    assert np.abs(whole[inside, inside] - on_detector).max() < 1e-15
    outside = whole.sum() - whole[inside, inside].sum()
    assert 1 - on_detector.sum() == pytest.approx(outside, abs=1e-12)
    assert 0.025 < outside < 0.045


@pytest.mark.parametrize("pixels", [32, 33])
def test_the_optical_axis_is_at_half_of_one_less_than_the_pixels(pixels: int) -> None:
    image = Optics(WAVELENGTH_NM, 64, 0.2, pixels, 2.0).psf(NO_OPD)
    assert np.abs(image - image[::-1]).max() < 1e-15
    assert np.abs(image - image[:, ::-1]).max() < 1e-15
    at_peak = np.argwhere(image > image.max() * (1 - 1e-9))
    assert np.array_equal(at_peak.mean(axis=0), [(pixels - 1) / 2] * 2)
    assert len(at_peak) == (1 if pixels % 2 else 4)


def test_images_of_a_batch_are_the_images_one_by_one() -> None:
    batch = np.array([INCIDENT_OPD_NM - shift * np.array(PROBE_OPD_NM) for shift in range(4)])
    images, jacobians = psf_and_jacobian(SMALL.optics, batch)
    for opd_nm, image, jacobian in zip(batch, images, jacobians, strict=True):
        assert np.abs(SMALL.optics.psf(opd_nm) - image).max() < 1e-16
        assert np.abs(psf_and_jacobian(SMALL.optics, opd_nm)[1] - jacobian).max() < 1e-16


@pytest.mark.parametrize("mode", range(6))
def test_the_jacobian_is_the_slope_of_the_image_in_each_coefficient(mode: int) -> None:
    step_nm = 1e-3 * np.eye(6)[mode]
    ahead, behind = (DEVELOPMENT.optics.psf(INCIDENT_OPD_NM + s) for s in (step_nm, -step_nm))
    slope = (ahead - behind) / 2e-3
    jacobian = psf_and_jacobian(DEVELOPMENT.optics, INCIDENT_OPD_NM)[1][mode]
    assert np.abs(jacobian - slope).max() < 1e-7 * np.abs(slope).max()


def test_the_twin_with_its_even_modes_negated_has_the_identical_image() -> None:
    image = DEVELOPMENT.optics.psf(INCIDENT_OPD_NM)
    twin = DEVELOPMENT.optics.psf(TWIN_SIGNS * INCIDENT_OPD_NM)
    assert np.abs(image - twin).max() < 1e-12 * image.max()


def test_no_other_choice_of_signs_and_no_probed_image_is_a_twin() -> None:
    image = DEVELOPMENT.optics.psf(INCIDENT_OPD_NM)
    for signs in (-TWIN_SIGNS, -np.ones(6), np.array([-1.0, 1, 1, 1, 1, 1])):
        assert np.abs(image - DEVELOPMENT.optics.psf(signs * INCIDENT_OPD_NM)).max() > 1e-3
    probed, twin_probed = (
        DEVELOPMENT.optics.psf(opd_nm - PROBE_OPD_NM)
        for opd_nm in (INCIDENT_OPD_NM, TWIN_SIGNS * INCIDENT_OPD_NM)
    )
    assert np.abs(probed - twin_probed).max() > 0.1 * probed.max()


def test_opd_counts_in_wavelengths() -> None:
    doubled = optics(2 * WAVELENGTH_NM, 32, 0.2, 20, 2.0)
    image = SMALL.optics.psf(INCIDENT_OPD_NM)
    assert np.abs(doubled.psf(2 * INCIDENT_OPD_NM) - image).max() < 1e-15
    assert np.abs(doubled.psf(INCIDENT_OPD_NM) - image).max() > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_wavefront_rms_is_the_norm_of_the_coefficients(seed: int) -> None:
    opd_nm = wavefront(seed, 137.0)
    assert DEVELOPMENT.optics.wavefront_rms_nm(opd_nm) == pytest.approx(137.0, rel=1e-12)


def test_strehl_is_1_without_residual_and_less_with_any() -> None:
    assert DEVELOPMENT.optics.strehl(NO_OPD) == 1
    assert all(DEVELOPMENT.optics.strehl(row) < 1 for row in 5 * np.eye(6))


def test_strehl_is_the_light_on_the_axis_over_that_without_aberration() -> None:
    axis = Optics(WAVELENGTH_NM, 64, 0.2, 33, 2.0)
    ratio = axis.psf(INCIDENT_OPD_NM)[16, 16] / axis.psf(NO_OPD)[16, 16]
    assert axis.strehl(INCIDENT_OPD_NM) == pytest.approx(ratio, rel=1e-12)


def test_strehl_is_not_that_of_the_brightest_pixel() -> None:
    # Strong defocus leaves a dark axis within a bright ring.
    defocus_nm = np.array([250.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    fine = Optics(WAVELENGTH_NM, 64, 0.2, 33, 4.0)
    brightest = fine.psf(defocus_nm).max() / fine.psf(NO_OPD).max()
    assert brightest > 2 * fine.strehl(defocus_nm)


@pytest.mark.parametrize("rms_nm", [5.0, 10.0, 20.0])
def test_marechal_agrees_with_the_exact_strehl_to_the_third_order_of_the_phase(
    rms_nm: float,
) -> None:
    phase = 2 * np.pi * rms_nm / WAVELENGTH_NM
    for seed in range(5):
        exact = DEVELOPMENT.optics.strehl(wavefront(seed, rms_nm))
        # The first term that Marechal leaves out is the skewness of the phase.
        assert abs(exact - np.exp(-(phase**2))) < phase**3 / 3


def test_marechal_with_half_the_phase_would_not_agree() -> None:
    exact = DEVELOPMENT.optics.strehl(wavefront(0, 20.0))
    phase = 2 * np.pi * 20.0 / WAVELENGTH_NM
    assert abs(exact - np.exp(-((phase / 2) ** 2))) > phase**3 / 3


def test_the_transform_uses_one_blas_thread_and_gives_it_back() -> None:
    def threads() -> list[int]:
        # SciPy brings a BLAS of its own, which the transform does not use.
        return [
            library["num_threads"]
            for library in threadpool_info()
            if library["user_api"] == "blas" and "numpy" in library["filepath"]
        ]

    before = threads()
    with one_blas_thread():
        assert threads() == [1]
    assert threads() == before
