"""Fits of drawn images, each judged against the truth behind it.

A trial follows from its scene's label and its own index alone, so that results
are the same for any number of processes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from probebench.clients.scripted import PROBE_OPD_NM, ZERO_OPD_NM
from probebench.environments.optical import config as configuration
from probebench.environments.optical.camera import (
    Calibration,
    Frame,
    calibration,
    draw_frame,
    expected_frame,
)
from probebench.environments.optical.estimator import fit, likelihood_of
from probebench.environments.optical.evaluator import fisher_information
from probebench.environments.optical.likelihood import Likelihood
from probebench.environments.optical.propagation import Reals, one_blas_thread
from probebench.wire.optical_fit import Fit

Command = tuple[float, ...]

ZERO: Command = tuple(ZERO_OPD_NM)
PROBE: Command = tuple(PROBE_OPD_NM)
# The camera of a development configuration; its seeds are not used.
DEVELOPMENT = calibration(
    configuration.parse(configuration.fresh_config(bytes, "tool_assisted", "limits"))
)
INCIDENT_RMS_NM = (60.0, 150.0)
ROOT = "probebench limits"

# Two ends nearer than this are one minimum; what the solvers' tolerances leave
# is a hundredth of it.
SAME_MINIMUM_SIGMA = 0.1
# Of the descent from the truth: of the root of the information, and steps so
# short that it does not leap into another basin.
GRADIENT_TOLERANCE = 1e-4
TRUST_NM = {"initial_trust_radius": 20.0, "max_trust_radius": 50.0}
BLOCK = 20


@dataclass(frozen=True)
class Scene:
    """What the trials of one cell have in common.

    label: sets the seeds; scenes of different labels are independent.
    commands_opd_nm: of each image, nm OPD.
    incident_rms_nm: range [low, high] of the uniform RMS of the wavefront.
    """

    label: str
    camera: Calibration
    commands_opd_nm: tuple[Command, ...]
    incident_rms_nm: tuple[float, float] = INCIDENT_RMS_NM


@dataclass(frozen=True)
class Trial:
    """One fit against its truth.  Squares of errors are over the squared floor.

    right_basin: the estimate is the minimum that a descent from the truth finds.
    listed: the result names that minimum, as the estimate or as another basin.
    error: |estimate - truth|^2 / trace(C), C the inverse of the true information
        at the truth; infinite where there is no estimate.
    linear_error: the same of the estimate to first order in the noise, the
        truth less the inverse Fisher matrix times the gradient there.
    expected_linear_error: its expectation, trace(inverse Fisher) / trace(C).
    normalised_error: (estimate - truth)^T (reported covariance)^-1 (same).
    linear_normalised_error: the same to first order, gradient^T (inverse Fisher)
        gradient at the truth; its expectation is six.
    floor_nm: root of trace(C), nm RMS.
    """

    right_basin: bool
    listed: bool
    error: float
    linear_error: float
    expected_linear_error: float
    normalised_error: float
    linear_normalised_error: float
    floor_nm: float

    @property
    def estimated(self) -> bool:
        """Whether the fit had an estimate, right or wrong."""
        return math.isfinite(self.error)


def generator(label: str, index: int) -> np.random.Generator:
    """The source of everything that is drawn in one trial."""
    key = hashlib.sha256(f"{ROOT} {label} {index}".encode()).digest()[:16]
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key)))


def wavefront_opd_nm(drawn: np.random.Generator, rms_nm: tuple[float, float]) -> Reals:
    """A (6,) OPD of isotropic direction, its RMS uniform in a range."""
    direction = drawn.standard_normal(6)
    return drawn.uniform(*rms_nm) * direction / np.linalg.norm(direction)


def trial(scene: Scene, index: int) -> Trial:
    """Draw a wavefront and its images, fit them, and judge the result."""
    truth, frames_e = draw(scene, index)
    with one_blas_thread():
        result = fit(scene.camera, frames_e, scene.commands_opd_nm)
        likelihood = likelihood_of(scene.camera, frames_e, scene.commands_opd_nm)
        residuals = [truth - np.array(command) for command in scene.commands_opd_nm]
        bound = np.linalg.inv(fisher_information(scene.camera, residuals))
        return judge(result, truth, likelihood, float(np.trace(bound)))


def draw(scene: Scene, index: int) -> tuple[Reals, list[Frame]]:
    """The incident OPD, (6,) nm, and the images of one trial."""
    drawn, camera = generator(scene.label, index), scene.camera
    truth = wavefront_opd_nm(drawn, scene.incident_rms_nm)
    seed_hex = drawn.bytes(16).hex()
    expected_e = [
        expected_frame(camera, truth - np.array(command)) for command in scene.commands_opd_nm
    ]
    return truth, [
        draw_frame(one_e, camera.read_noise_e, seed_hex, exposure)
        for exposure, one_e in enumerate(expected_e)
    ]


def judge(result: Fit, truth: Reals, likelihood: Likelihood, squared_floor: float) -> Trial:
    """Compare a fit with the (6,) truth in nm, under the likelihood of its images."""
    there = likelihood.at(truth)
    inverse = np.linalg.inv(there.fisher)
    common = {
        "linear_error": float(np.sum((inverse @ there.gradient) ** 2)) / squared_floor,
        "expected_linear_error": float(np.trace(inverse)) / squared_floor,
        "linear_normalised_error": float(there.gradient @ inverse @ there.gradient),
        "floor_nm": squared_floor**0.5,
    }
    if result.estimate_opd_nm is None:
        nothing = {"right_basin": False, "listed": False}
        return Trial(**nothing, error=np.inf, normalised_error=np.inf, **common)
    end = descent(likelihood, truth)
    metric = likelihood.at(end).fisher
    basins = [result.estimate_opd_nm, *(basin.opd_nm for basin in result.other_basins)]
    same = [is_same_minimum(np.array(basin), end, metric) for basin in basins]
    error_nm = np.array(result.estimate_opd_nm) - truth
    covariance = np.array(result.covariance_nm2, dtype=np.float64)
    return Trial(
        right_basin=same[0],
        listed=any(same),
        error=float(error_nm @ error_nm) / squared_floor,
        normalised_error=float(error_nm @ np.linalg.solve(covariance, error_nm)),
        **common,
    )


def is_same_minimum(one_opd_nm: Reals, other_opd_nm: Reals, fisher: Reals) -> bool:
    """Whether two ends lie within ``SAME_MINIMUM_SIGMA``, by a (6, 6) Fisher matrix."""
    step_nm = one_opd_nm - other_opd_nm
    return bool(step_nm @ fisher @ step_nm < SAME_MINIMUM_SIGMA**2)


def descent(likelihood: Likelihood, start_opd_nm: Reals) -> Reals:
    """The minimum of the objective below a start, (6,) nm.

    By another of SciPy's solvers than the estimator's, and its own tolerance.
    """
    scale = float(np.sqrt(np.linalg.eigvalsh(likelihood.at(start_opd_nm).fisher)[-1]))

    def objective(opd_nm: Any, *_: Any, **__: Any) -> float:
        return likelihood.at(opd_nm).objective

    def gradient(opd_nm: Any, *_: Any, **__: Any) -> Any:
        return likelihood.at(opd_nm).gradient

    def fisher(opd_nm: Any, *_: Any, **__: Any) -> Any:
        return likelihood.at(opd_nm).fisher

    options: Any = {"gtol": GRADIENT_TOLERANCE * scale, **TRUST_NM}
    ended = minimize(
        objective, start_opd_nm, method="trust-exact", jac=gradient, hess=fisher, options=options
    )
    minimum: Reals = ended.x
    return minimum


def run(executor: Executor, scenes: Sequence[tuple[Scene, int]]) -> list[list[Trial]]:
    """The trials of each of the scenes, so many of each."""
    blocks = [
        (scene, range(first, min(first + BLOCK, trials)))
        for scene, trials in scenes
        for first in range(0, trials, BLOCK)
    ]
    of_scene: dict[str, list[Trial]] = {scene.label: [] for scene, _ in scenes}
    for (scene, _), done in zip(blocks, executor.map(_block, blocks), strict=True):
        of_scene[scene.label] += done
    return [of_scene[scene.label] for scene, _ in scenes]


def _block(block: tuple[Scene, Iterable[int]]) -> list[Trial]:
    scene, indices = block
    return [trial(scene, index) for index in indices]
