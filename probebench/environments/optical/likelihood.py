"""The shifted-Poisson likelihood of an incident wavefront, with its derivatives.

An electron count e of mean m and read noise s has mean m and variance m + s^2.
x = e + s^2 has equal mean and variance v = m + s^2 and is treated as Poisson
(Snyder et al. 1993, J. Opt. Soc. Am. A 10, 1014).  Since v >= s^2 > 0 the
likelihood is smooth everywhere, for negative counts too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.linearisation import Linearisation
from probebench.environments.optical.propagation import Imaging, Reals


@dataclass(frozen=True)
class LikelihoodPoint:
    """The likelihood at one incident OPD.

    objective: sum of (v - r) - x log(v / r), r = max(x, s^2): the negative
        log-likelihood but for a constant of the images.  Written so that a
        good fit is a sum of small terms, not a difference of large ones.
    gradient: (6,) per nm.
    fisher: (6, 6) per nm^2, expected: sum of (dm/dc)(dm/dc)^T / v.
    """

    objective: float
    gradient: Reals
    fisher: Reals

    @property
    def gradient_norm(self) -> float:
        """Euclidean norm of the gradient, per nm."""
        return float(np.linalg.norm(self.gradient))

    @property
    def finite(self) -> bool:
        """Whether every number is finite."""
        total = self.objective + float(np.sum(self.gradient)) + float(np.sum(self.fisher))
        return math.isfinite(total)


@dataclass
class _Images:
    """What is known of one incident OPD."""

    variance: Reals  # v, (k, rows, columns)
    objective: float
    point: LikelihoodPoint | None = field(default=None)


class Likelihood:
    """The likelihood of one set of images.

    frames_e: (k, rows, columns) electrons.
    commands_opd_nm: (k, 6) nm, the command of each.
    dtype: of the derivatives.  Seven digits of them move a maximum by less than
        1e-5 of its standard deviation, and cost half; images take all digits,
        at any number of photons.
    """

    def __init__(
        self,
        calibration: Calibration,
        frames_e: Reals,
        commands_opd_nm: Reals,
        dtype: type[np.floating] = np.float32,
    ) -> None:
        self._imaging = Imaging(calibration.optics, len(commands_opd_nm))
        self._linearisation = Linearisation(calibration.optics, dtype)
        self._dtype = dtype
        self._photons = calibration.photons_per_exposure
        self._read_variance = calibration.read_noise_e**2
        self._commands_opd_nm = commands_opd_nm
        self._shifted = frames_e + self._read_variance
        self._reference = np.maximum(self._shifted, self._read_variance)
        self._key = b""
        self._latest: _Images | None = None

    def objective(self, incident_opd_nm: Reals) -> float:
        """The objective alone, at a (6,) incident OPD, nm."""
        return self._images(incident_opd_nm).objective

    def at(self, incident_opd_nm: Reals) -> LikelihoodPoint:
        """Evaluate at a (6,) incident OPD, nm; the latest point is kept.

        The optimiser asks for objective, gradient and Fisher matrix one by
        one; they share the images.  Overflow gives numbers that are not finite.
        """
        images = self._images(incident_opd_nm)
        if images.point is None:
            with np.errstate(all="ignore"):
                images.point = self._point(images)
        return images.point

    def misfit_sigma(self, incident_opd_nm: Reals) -> float:
        """How much worse the images fit than images of this OPD would.

        Pearson's sum of (x - v)^2 / v, less its mean (the number of pixels),
        over its standard deviation, the root of the sum of 2 + m / v^2.
        """
        variance = self._images(incident_opd_nm).variance
        mean = variance - self._read_variance
        with np.errstate(all="ignore"):
            chi_square = np.sum((variance - self._shifted) ** 2 / variance)
            spread = np.sqrt(np.sum(2 + mean / variance**2))
        return float((chi_square - mean.size) / spread)

    def _images(self, incident_opd_nm: Reals) -> _Images:
        key = incident_opd_nm.tobytes()
        if self._latest is None or key != self._key:
            with np.errstate(all="ignore"):
                self._key, self._latest = key, self._imaged(incident_opd_nm)
        return self._latest

    def _imaged(self, incident_opd_nm: Reals) -> _Images:
        images = self._imaging.images(incident_opd_nm - self._commands_opd_nm)
        variance = self._photons * images
        variance += self._read_variance
        excess = variance - self._reference
        logarithm = np.log1p(excess / self._reference)
        logarithm *= self._shifted
        excess -= logarithm
        return _Images(variance, float(np.sum(excess)))

    def _point(self, images: _Images) -> LikelihoodPoint:
        weight = 1 / images.variance
        slope = 1 - self._shifted * weight
        weights, slopes = weight.astype(self._dtype), slope.astype(self._dtype)
        gradient, fisher = np.zeros(6), np.zeros((6, 6))
        for parts, detector_field, weight, slope in zip(
            self._imaging.parts, self._imaging.fields, weights, slopes, strict=True
        ):
            jacobian = self._linearisation.derivatives(parts, detector_field).reshape(6, -1)
            gradient += jacobian @ slope.ravel()
            fisher += (jacobian * weight.ravel()) @ jacobian.T
        return LikelihoodPoint(
            objective=images.objective,
            gradient=self._photons * gradient,
            fisher=self._photons**2 * fisher,
        )
