"""The shifted-Poisson likelihood of an incident wavefront, with its derivatives.

An electron count e of mean m and read noise s has mean m and variance m + s^2.
x = e + s^2 has equal mean and variance v = m + s^2 and is treated as Poisson
(Snyder et al. 1993, J. Opt. Soc. Am. A 10, 1014).  Since v >= s^2 > 0 the
likelihood is smooth everywhere, for negative counts too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.propagation import Reals


@dataclass(frozen=True)
class LikelihoodPoint:
    """The likelihood at one incident OPD.

    objective: sum of (v - r) - x log(v / r), r = max(x, s^2): the negative
        log-likelihood but for a constant of the images.  Written so that a
        good fit is a sum of small terms, not a difference of large ones.
    gradient: (6,) per nm.
    fisher: (6, 6) per nm^2, expected: sum of (dm/dc)(dm/dc)^T / v.
    misfit_sigma: Pearson's sum of (x - v)^2 / v, less its mean (the number of
        pixels), over its standard deviation, the root of the sum of 2 + m / v^2.
    """

    objective: float
    gradient: Reals
    fisher: Reals
    misfit_sigma: float

    @property
    def gradient_norm(self) -> float:
        """Euclidean norm of the gradient, per nm."""
        return float(np.linalg.norm(self.gradient))

    @property
    def finite(self) -> bool:
        """Whether every number is finite."""
        numbers = [self.objective, self.misfit_sigma, *self.gradient, *self.fisher.ravel()]
        return bool(np.all(np.isfinite(numbers)))


class Likelihood:
    """The likelihood of one set of images.

    frames_e: (k, rows, columns) electrons.
    commands_opd_nm: (k, 6) nm, the command of each.
    """

    def __init__(self, calibration: Calibration, frames_e: Reals, commands_opd_nm: Reals) -> None:
        self._optics = calibration.optics
        self._photons = calibration.photons_per_exposure
        self._read_variance = calibration.read_noise_e**2
        self._commands_opd_nm = commands_opd_nm
        self._shifted = frames_e + self._read_variance
        self._reference = np.maximum(self._shifted, self._read_variance)
        self._key = b""
        self._latest: LikelihoodPoint | None = None

    def at(self, incident_opd_nm: Reals) -> LikelihoodPoint:
        """Evaluate at a (6,) incident OPD, nm; the latest point is kept.

        The optimiser asks for objective, gradient and Fisher matrix one by
        one; they share the images.  Overflow gives numbers that are not finite.
        """
        key = incident_opd_nm.tobytes()
        if self._latest is None or key != self._key:
            self._key, self._latest = key, self._evaluate(incident_opd_nm)
        return self._latest

    def _evaluate(self, incident_opd_nm: Reals) -> LikelihoodPoint:
        residual_opd_nm = incident_opd_nm - self._commands_opd_nm
        psf, jacobian = self._optics.psf_and_jacobian(residual_opd_nm)
        mean = self._photons * psf
        jacobian = self._photons * np.moveaxis(jacobian, 1, 0).reshape(jacobian.shape[1], -1)
        variance = mean + self._read_variance
        with np.errstate(all="ignore"):
            return self._point(mean, variance, jacobian)

    def _point(self, mean: Reals, variance: Reals, jacobian: Reals) -> LikelihoodPoint:
        excess = variance - self._reference
        objective = np.sum(excess - self._shifted * np.log1p(excess / self._reference))
        residual = variance - self._shifted
        chi_square = np.sum(residual**2 / variance)
        spread = np.sqrt(np.sum(2 + mean / variance**2))
        return LikelihoodPoint(
            objective=float(objective),
            gradient=jacobian @ (residual / variance).ravel(),
            fisher=(jacobian / variance.ravel()) @ jacobian.T,
            misfit_sigma=float((chi_square - mean.size) / spread),
        )
