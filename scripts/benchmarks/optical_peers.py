"""The same camera and the same fit in the packages that people use today.

Every peer is given the pupil, the modes and the detector of this project, and
is called as its users call it.  What differs between them, and what each is
told to make the pixels fall on the same places:

hcipy     optical axis where the grid says; given a grid centred at (n-1)/2
prysm     optical axis on pixel n/2; the detector is shifted by half a pixel
poppy     axis at (n-1)/2; its Fourier transform has the other sign, so that its
          image is turned by 180 degrees (both axes are reversed here)
solvephase  axis at (n-1)/2 and the sign of this project

All have rows along y, row 0 at the bottom, as this project has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.propagation import Reals

Camera = Callable[[Reals], Any]

METRES_PER_NM = 1e-9
ARCSEC_PER_RADIAN = 180 * 3600 / np.pi

CONVENTIONS = {
    "hcipy": "detector grid centred at (n-1)/2, as given",
    "prysm": "axis on pixel n/2; detector shifted by half a pixel",
    "poppy": "axis at (n-1)/2; transform of the other sign, both axes reversed",
    "solvephase": "axis at (n-1)/2; as here",
}


def cameras(calibration: Calibration) -> dict[str, Camera]:
    """From six coefficients, nm, to an image whose whole plane holds 1, by package."""
    return {
        "hcipy": hcipy_camera(calibration),
        "prysm": prysm_camera(calibration),
        "solvephase": solvephase_camera(calibration),
        "poppy": poppy_camera(calibration),
    }


def hcipy_camera(calibration: Calibration) -> Camera:
    """Mode basis, wavefront and Fraunhofer propagator."""
    import hcipy

    optics, wavelength_m = calibration.optics, calibration.wavelength_nm * METRES_PER_NM
    pupil_grid = hcipy.make_pupil_grid(calibration.pupil_samples, 1.0)
    across = calibration.pixels / calibration.samples_per_lambda_over_d
    focal_grid = hcipy.make_pupil_grid(calibration.pixels, across).scaled(wavelength_m)
    propagator = hcipy.FraunhoferPropagator(pupil_grid, focal_grid, focal_length=1.0)
    aperture = hcipy.Field(optics.pupil.astype(float).ravel(), pupil_grid)
    modes = [hcipy.Field(METRES_PER_NM * mode.ravel(), pupil_grid) for mode in optics.modes]
    basis = hcipy.ModeBasis(modes, pupil_grid)

    def image(residual_opd_nm: Reals) -> Any:
        opd_m = basis.linear_combination(residual_opd_nm)
        field = aperture * np.exp(2j * np.pi / wavelength_m * opd_m)
        wavefront = hcipy.Wavefront(hcipy.Field(field, pupil_grid), wavelength_m)
        wavefront.total_power = 1
        return propagator.forward(wavefront).power.shaped

    return image


def prysm_camera(calibration: Calibration) -> Camera:
    """Sum of modes, wavefront, propagation to a fixed sampling."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pkg_resources
        from prysm.polynomials import sum_of_2d_modes
        from prysm.propagation import Wavefront

    optics, samples = calibration.optics, calibration.pupil_samples
    amplitude = optics.pupil / np.sqrt(np.count_nonzero(optics.pupil))
    wavelength_um = calibration.wavelength_nm / 1000
    pitch_um = wavelength_um / calibration.samples_per_lambda_over_d  # at f/1
    shift = (-pitch_um / 2, -pitch_um / 2) if calibration.pixels % 2 == 0 else (0, 0)

    def image(residual_opd_nm: Reals) -> Any:
        opd_nm = sum_of_2d_modes(optics.modes, residual_opd_nm)
        wavefront = Wavefront.from_amp_and_phase(amplitude, opd_nm, wavelength_um, 1 / samples)
        focused = wavefront.focus_fixed_sampling(1.0, pitch_um, calibration.pixels, shift=shift)
        return focused.intensity.data

    return image


def poppy_camera(calibration: Calibration) -> Camera:
    """An optical system of a pupil with an OPD, and a detector."""
    import poppy
    from astropy import units

    poppy.conf.use_multiprocessing = False
    optics, samples = calibration.optics, calibration.pupil_samples
    wavelength_m = calibration.wavelength_nm * METRES_PER_NM
    element = poppy.ArrayOpticalElement(
        transmission=optics.pupil.astype(float),
        opd=np.zeros((samples, samples)),
        pixelscale=units.m / units.pixel / samples,
    )
    system = poppy.OpticalSystem(npix=samples, pupil_diameter=1.0 * units.m, oversample=1)
    system.add_pupil(element)
    pixel_arcsec = wavelength_m / calibration.samples_per_lambda_over_d * ARCSEC_PER_RADIAN
    system.add_detector(pixelscale=pixel_arcsec, fov_pixels=calibration.pixels, oversample=1)

    def image(residual_opd_nm: Reals) -> Any:
        element.opd = np.tensordot(METRES_PER_NM * residual_opd_nm, optics.modes, axes=1)
        return system.calc_psf(wavelength_m)[0].data[::-1, ::-1]

    return image


def solvephase_camera(calibration: Calibration) -> Camera:
    """Its focal-plane model, forward."""
    fitting = SolvephaseFit.of(calibration, np.zeros((1, len(calibration.optics.modes))))
    radians_per_nm = 2 * np.pi / calibration.wavelength_nm
    modes = calibration.optics.modes

    def image(residual_opd_nm: Reals) -> Any:
        phase = radians_per_nm * np.tensordot(residual_opd_nm, modes, axes=1)
        return fitting.model.forward(phase).images[0]

    return image


@dataclass(frozen=True)
class SolvephaseFit:
    """Images of known commands, fitted by solvephase; the commands are its diversity."""

    package: Any
    calibration: Calibration
    pupil: Any
    basis: Any
    model: Any
    diversity_m: Reals

    @classmethod
    def of(cls, calibration: Calibration, commands_opd_nm: Reals) -> SolvephaseFit:
        """For commands (k, 6), nm."""
        import solvephase

        optics = calibration.optics
        pupil = solvephase.Pupil(
            optics.pupil.astype(float), 1 / calibration.pupil_samples, diameter=1.0
        )
        diversity_m = np.tensordot(-METRES_PER_NM * commands_opd_nm, optics.modes, axes=1)
        model = solvephase.FocalPlaneModel(
            pupil,
            calibration.wavelength_nm * METRES_PER_NM,
            calibration.pixels,
            sampling=calibration.samples_per_lambda_over_d,
            diversity=diversity_m,
        )
        basis = solvephase.Basis(pupil, optics.modes[:, optics.pupil])
        return cls(solvephase, calibration, pupil, basis, model, diversity_m)

    def retrieve(self, frames_e: Reals) -> Reals:
        """Its one-call retrieval, from a flat start and from Gerchberg-Saxton; nm."""
        result = self.package.retrieve(
            frames_e,
            self.pupil,
            self.calibration.wavelength_nm * METRES_PER_NM,
            sampling=self.calibration.samples_per_lambda_over_d,
            diversity=self.diversity_m,
            basis=self.basis,
            read_noise=self.calibration.read_noise_e,
            fit_background=False,
        )
        return np.asarray(result.coefficients) / METRES_PER_NM

    def solve(self, frames_e: Reals) -> Reals:
        """Levenberg-Marquardt from a flat start; nm."""
        problem = self.package.FocalPlaneProblem(
            self.model,
            frames_e,
            basis=self.basis,
            loss="poisson",
            read_noise=self.calibration.read_noise_e,
        )
        result = self.package.solve(problem, method="lm")
        return np.asarray(result.coefficients) / METRES_PER_NM
