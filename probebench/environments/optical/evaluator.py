"""Hidden: how good the final command is, and how good it could have been."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probebench.environments.optical.camera import Calibration, calibration
from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.fixture import Instrument, incident_opd_nm
from probebench.environments.optical.linearisation import psf_and_jacobian
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.kernel.canonical import Json

# Beyond it the images leave some direction all but unmeasured.
MAX_CONDITION = 1e12

Command = Sequence[float]


def evaluate(
    config: OpticalConfig, exposed_commands_opd_nm: Sequence[Command], final_command_opd_nm: Command
) -> Json:
    """Judge a final command by the wavefront.

    exposed_commands_opd_nm: the (6,) command of every exposure, in order.
    Returns WFE in nm RMS over the pupil, Strehl ratios, realised photons, and
    the Cramer-Rao floor of the images that were taken, or null and the reason.
    """
    camera, instrument = calibration(config), Instrument(config)
    incident = incident_opd_nm(config)
    with one_blas_thread():
        residuals = [incident - np.asarray(command) for command in exposed_commands_opd_nm]
        measured_wfe_nm = [camera.optics.wavefront_rms_nm(residual) for residual in residuals]
        final = incident - np.asarray(final_command_opd_nm)
        wfe_nm = camera.optics.wavefront_rms_nm(final)
        best = int(np.argmin(measured_wfe_nm))
        floor_nm, reason = cramer_rao_floor_nm(camera, residuals)
        expected = [float(instrument.expected(c).sum()) for c in exposed_commands_opd_nm]
        return {
            "residual_wfe_nm_rms": wfe_nm,
            "strehl": camera.optics.strehl(final),
            "strehl_marechal": float(np.exp(-((2 * np.pi * wfe_nm / camera.wavelength_nm) ** 2))),
            "zero_command_wfe_nm_rms": camera.optics.wavefront_rms_nm(incident),
            "measured_wfe_nm_rms": measured_wfe_nm,
            "best_measured_exposure_index": best,
            "best_measured_wfe_nm_rms": measured_wfe_nm[best],
            "cramer_rao_floor_nm_rms": floor_nm,
            "cramer_rao_floor_reason": reason,
            "realised_photons": [
                instrument.realised_photons(command, index)
                for index, command in enumerate(exposed_commands_opd_nm)
            ],
            "expected_photons_outside_detector": [
                camera.photons_per_exposure - value for value in expected
            ],
        }


def fisher_information(camera: Calibration, residuals_opd_nm: Sequence[Reals]) -> Reals:
    """Fisher matrix of six coefficients, (6, 6) per nm^2, of images under residuals.

    Per pixel of mean m and read noise s, with v = m + s^2, the information on m
    is taken as 1/v + s^4 / (2 v^4): exact for a Poisson count (s = 0), and the
    information of a Gaussian with mean m and variance v where s^2 dominates.
    """
    psf, jacobian = psf_and_jacobian(camera.optics, np.array(residuals_opd_nm))
    derivative = camera.photons_per_exposure * jacobian
    variance = camera.photons_per_exposure * psf + camera.read_noise_e**2
    information = 1 / variance + camera.read_noise_e**4 / (2 * variance**4)
    weighted = derivative * information[:, np.newaxis]
    fisher: Reals = np.einsum("kiyx,kjyx->ij", weighted, derivative)
    return fisher


def cramer_rao_floor_nm(
    camera: Calibration, residuals_opd_nm: Sequence[Reals]
) -> tuple[float | None, str | None]:
    """Least RMS error of an unbiased estimate, nm RMS over the pupil, or why there is none."""
    fisher = fisher_information(camera, residuals_opd_nm)
    if not np.linalg.cond(fisher) < MAX_CONDITION:
        return None, "the images leave a combination of the modes unmeasured"
    return float(np.sqrt(np.trace(np.linalg.inv(fisher)))), None
