"""What the estimator does, as numbers that the request discloses."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.linearisation import psf_and_jacobian
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.wire.optical_fit import EstimatorDisclosure

REFERENCE_WAVELENGTH_NM = 850.0
# (position of the mode, signed offset in nm at the reference wavelength).  Odd
# modes have no twin, so one sign is enough; trefoil needs no start of its own.
OFFSETS_NM = (
    (0, 100.0),
    (0, -100.0),
    (1, 100.0),
    (1, -100.0),
    (2, 100.0),
    (2, -100.0),
    (3, 100.0),
    (4, 100.0),
)
COEFFICIENT_BOUND_NM = 500.0
ITERATIONS_PER_START = 30
# Of the root of the information that one exposure carries: a run that ends so
# is within a small fraction of a standard deviation of its minimum.
GRADIENT_TOLERANCE = 1e-4
INITIAL_TRUST_RADIUS_NM = 100.0
MAX_TRUST_RADIUS_NM = 200.0
# A fifth of a radian of phase.  Over such a distance images are all but linear
# in the coefficients, so that no second minimum can lie within it.
JOINING_DISTANCE_NM = 25.0
BASIN_LOG_LIKELIHOOD = 10.0
TIE_LOG_LIKELIHOOD = 1e-3
CAMERA_SCORE = "unbiased_sharpness"


def wavelength_scale(calibration: Calibration) -> float:
    """Lengths of the search in nm scale with the wavelength; phases do not."""
    return calibration.wavelength_nm / REFERENCE_WAVELENGTH_NM


def starts_opd_nm(calibration: Calibration) -> Reals:
    """The starts, (9, 6) nm: zero, then one offset each."""
    starts = np.zeros((1 + len(OFFSETS_NM), 6))
    for row, (mode, offset_nm) in enumerate(OFFSETS_NM, start=1):
        starts[row, mode] = offset_nm * wavelength_scale(calibration)
    return starts


@lru_cache(maxsize=16)
def gradient_tolerance_per_nm(calibration: Calibration) -> float:
    """Gradient norm, per nm, below which a run has converged.

    GRADIENT_TOLERANCE times the root of the largest eigenvalue of the expected
    Fisher matrix of one exposure under the defocus of the second start, so that it
    follows photons, read noise, sampling and wavelength; three significant digits.
    """
    residual_opd_nm = starts_opd_nm(calibration)[1]
    with one_blas_thread():
        psf, jacobian = psf_and_jacobian(calibration.optics, residual_opd_nm)
    photons = calibration.photons_per_exposure
    variance = (photons * psf + calibration.read_noise_e**2).ravel()
    derivative = photons * jacobian.reshape(6, -1)
    fisher = (derivative / variance) @ derivative.T
    tolerance = GRADIENT_TOLERANCE * np.sqrt(np.linalg.eigvalsh(fisher)[-1])
    # It stands in every request, which is compared exactly under any processor.
    return float(f"{tolerance:.3g}")


def disclosure(calibration: Calibration) -> EstimatorDisclosure:
    """What a request says of the estimator."""
    scale = wavelength_scale(calibration)
    return EstimatorDisclosure(
        method="maximum likelihood over all acquired images: electrons + read_noise_e^2 taken as "
        "Poisson of the expected electrons + read_noise_e^2; exact gradient, expected Fisher "
        "matrix as Hessian",
        solver="scipy.optimize.minimize(method='dogleg') from each start in turn",
        starts_opd_nm=starts_opd_nm(calibration).tolist(),
        coefficient_bound_nm=COEFFICIENT_BOUND_NM,
        iterations_per_start=ITERATIONS_PER_START,
        gradient_tolerance_per_nm=gradient_tolerance_per_nm(calibration),
        initial_trust_radius_nm=INITIAL_TRUST_RADIUS_NM * scale,
        max_trust_radius_nm=MAX_TRUST_RADIUS_NM * scale,
        joining_distance_nm=JOINING_DISTANCE_NM * scale,
        other_basins_within_log_likelihood=BASIN_LOG_LIKELIHOOD,
        tie_within_log_likelihood=TIE_LOG_LIKELIHOOD,
        needs="images under at least two distinct commands; even so, convergence does not show "
        "that the estimate is right",
        camera_score=CAMERA_SCORE,
        camera_score_formula="sum over pixels of (e^2 - e - read_noise_e^2) / "
        "photons_per_exposure^2, an unbiased estimate of the sum of squares of the expected "
        "image over photons_per_exposure^2",
    )
