"""Which commands make the images tell most of the wavefront.

The Fisher matrix of several images is the sum of theirs, and that of an image
depends on its residual alone, so every design is a sum of matrices that are
computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import combinations, product

import numpy as np

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.evaluator import fisher_information
from probebench.environments.optical.propagation import Reals, one_blas_thread
from scripts.benchmarks.limit_studies.estimates import MODES, root_mean
from scripts.benchmarks.limit_studies.trials import (
    INCIDENT_RMS_NM,
    ZERO,
    Command,
    generator,
    wavefront_opd_nm,
)

SINGLE_NM = (50.0, 80.0, 100.0, 125.0, 150.0, 200.0)
PAIR_RMS_NM = (100.0, 150.0, 200.0)
Design = tuple[Command, ...]


def probes() -> list[Command]:
    """The candidates: one mode, or two in equal shares, of either sign, nm OPD."""
    found = [
        _command({mode: sign * amplitude})
        for mode, amplitude, sign in product(range(MODES), SINGLE_NM, (1, -1))
    ]
    for (one, other), rms, signs in product(
        combinations(range(MODES), 2), PAIR_RMS_NM, product((1, -1), repeat=2)
    ):
        # Whole nanometres, so that a design can be written down.
        share = round(rms / np.sqrt(2))
        found.append(_command({one: signs[0] * share, other: signs[1] * share}))
    return found


def _command(coefficients: dict[int, float]) -> Command:
    return tuple(float(coefficients.get(mode, 0)) for mode in range(MODES))


def wavefronts(label: str, count: int) -> Reals:
    """Incident wavefronts of the development range, (count, 6) nm."""
    drawn = [wavefront_opd_nm(generator(label, i), INCIDENT_RMS_NM) for i in range(count)]
    return np.array(drawn)


def informations(
    executor: Executor, camera: Calibration, incident_opd_nm: Reals, commands: Sequence[Command]
) -> dict[Command, Reals]:
    """For each command the Fisher matrix of its image of each wavefront, (w, 6, 6)."""
    given = [(camera, incident_opd_nm, command) for command in commands]
    return dict(zip(commands, executor.map(_information, given, chunksize=8), strict=True))


def _information(given: tuple[Calibration, Reals, Command]) -> Reals:
    camera, incident_opd_nm, command = given
    with one_blas_thread():
        return np.array(
            [fisher_information(camera, [incident - command]) for incident in incident_opd_nm]
        )


def floors_nm(fishers: Reals) -> Reals:
    """Cramer-Rao floors, (...) nm RMS, of Fisher matrices (..., 6, 6) per nm^2."""
    floors: Reals = np.sqrt(np.trace(np.linalg.inv(fishers), axis1=-2, axis2=-1))
    return floors


def best_designs(of_command: dict[Command, Reals], images: int, count: int) -> list[Design]:
    """The designs of least RMS floor: the zero command first, then the best others."""
    candidates = [command for command in of_command if command != ZERO]
    designs = [(ZERO, *others) for others in combinations(candidates, images - 1)]
    scores = np.array([rms_floor_nm(total(of_command, design)) for design in designs])
    return [designs[index] for index in np.argsort(scores, kind="stable")[:count]]


def total(of_command: dict[Command, Reals], design: Design) -> Reals:
    """The information of all images of a design, of each wavefront, (w, 6, 6) per nm^2."""
    summed: Reals = np.sum([of_command[command] for command in design], axis=0)
    return summed


def rms_floor_nm(fishers: Reals) -> float:
    """Root mean square of the floors over the wavefronts, nm."""
    return float(np.sqrt(np.mean(floors_nm(fishers) ** 2)))


def floor_figures(fishers: Reals, reference: Reals) -> dict[str, float]:
    """RMS floor over the wavefronts, its 95 % quantile, and its ratio to a reference's.

    fishers, reference: (w, 6, 6) per nm^2, of the same wavefronts.
    """
    floors = floors_nm(fishers)
    rms_nm, standard_error_nm = root_mean(floors**2)
    return {
        "floor_nm_rms": rms_nm,
        "standard_error_nm": standard_error_nm,
        "floor_95_nm": float(np.quantile(floors, 0.95)),
        "floor_over_reference": rms_nm / rms_floor_nm(reference),
    }
