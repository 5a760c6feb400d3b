"""Camera and estimator beside hcipy, prysm, solvephase and poppy.

    uv run --group bench python scripts/benchmarks/optical.py [--json] [--rounds 60] [--fits 12]

Same pupil, modes, detector, frames and noise for all; one thread; one alternating
run per size.  Prints agreement, and how many times as long each
peer takes: the median over the rounds, with quartiles.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from probebench.environments.optical.camera import Calibration, draw_frame, expected_frame
from probebench.environments.optical.estimator import fit, likelihood_of
from probebench.environments.optical.linearisation import Linearisation
from probebench.environments.optical.propagation import Imaging, Reals, one_blas_thread
from probebench.environments.optical.search import run_from
from probebench.environments.optical.starts import starts_opd_nm
from probebench.host import runtime
from scripts.benchmarks.optical_peers import CONVENTIONS, SolvephaseFit, cameras
from scripts.benchmarks.optical_tables import (
    FIT,
    ONE_START,
    OURS,
    RETRIEVE,
    SOLVE,
    TANGENT,
    markdown,
)
from scripts.benchmarks.timing import (
    PROBE,
    alternating,
    machine,
    probe,
    quantiles,
    ratios,
    require_one_thread,
    verdict,
)

PACKAGES = ("probebench", "numpy", "scipy", "hcipy", "prysm", "solvephase", "poppy", "numexpr")
SIZES = ((64, 32, 2.0), (96, 48, 2.0), (128, 64, 3.0))
COMMANDS_OPD_NM = np.array([[0.0] * 6, [100.0, 0, 0, 0, 0, 0]])

# How many times as fast as each peer, at the first and last size.
PSF_TARGETS = {
    64: {"hcipy": 8.0, "prysm": 3.5, "solvephase": 4.0, "poppy": 10.0},
    128: {"hcipy": 7.0, "prysm": 4.0, "solvephase": 4.5, "poppy": 10.0},
}
FIT_TARGETS = {RETRIEVE: (FIT, 12.0), SOLVE: (ONE_START, 5.0)}
AGREEMENT_TARGET = 1e-12
# NumPy has a tangent of several numbers at a time for such processors alone.
VECTOR_TANGENT = "X86_V4"
STARTS = 5  # of an interpreter, to see what an import takes
CALLS = 10  # of an act of less than a millisecond, a round


def calibration_of(size: tuple[int, int, float]) -> Calibration:
    """The development camera at another size."""
    samples, pixels, per_lambda = size
    return Calibration(850.0, samples, 0.2, pixels, per_lambda, 30_000, 3.0, 200.0)


def wavefront_opd_nm(generator: np.random.Generator) -> Reals:
    """A wavefront of 60 to 150 nm RMS, of any direction; (6,) nm."""
    direction = generator.standard_normal(6)
    return np.asarray(generator.uniform(60, 150) * direction / np.linalg.norm(direction))


def psf_figures(calibration: Calibration, rounds: int) -> dict[str, Any]:
    """Agreement of one image, and the time of it, for all packages."""
    generator = np.random.default_rng(1)
    peers = cameras(calibration)
    opd_nm = wavefront_opd_nm(generator)
    ours = calibration.optics.psf(opd_nm)
    agreement = {
        name: float(np.abs(np.asarray(camera(opd_nm)) - ours).max() / ours.max())
        for name, camera in peers.items()
    }
    imaging, one = Imaging(calibration.optics, 1), opd_nm[np.newaxis]
    acts: dict[str, Any] = {PROBE: probe(), OURS: lambda: imaging.images(one)}
    acts |= {name: (lambda c=camera: c(opd_nm)) for name, camera in peers.items()}
    times = alternating(acts, rounds, CALLS)
    return {
        "agreement_of_peak": agreement,
        "ms": _milliseconds(times),
        "ratio": {name: ratios(times, OURS, name) for name in peers},
        "profile_ms": psf_profile(calibration, opd_nm, rounds),
    }


def psf_profile(calibration: Calibration, opd_nm: Reals, rounds: int) -> dict[str, Any]:
    """Where the time of an image and of its derivatives goes."""
    imaging = Imaging(calibration.optics, 1)
    derivatives = Linearisation(calibration.optics, np.float32)
    imaging.images(opd_nm[np.newaxis])
    parts, fields = imaging.parts, imaging.fields
    part_rows, along_x, field_rows, image = imaging._views[0]  # noqa: SLF001 - timed by step
    half_phase = calibration.optics.mode_signs * opd_nm @ calibration.optics.half_phase
    tangent = np.empty_like(half_phase)
    acts = {
        "pupil field": lambda: imaging._fold_pupil(opd_nm, part_rows),  # noqa: SLF001
        TANGENT: lambda: np.tan(half_phase, tangent),
        "transform": lambda: imaging._transform(along_x, field_rows),  # noqa: SLF001
        "intensity": lambda: imaging._square(field_rows, image),  # noqa: SLF001
        "six derivatives, single precision": lambda: derivatives.derivatives(parts[0], fields[0]),
    }
    return _milliseconds(alternating(acts, rounds, CALLS))


def fit_figures(calibration: Calibration, fits: int) -> dict[str, Any]:
    """Estimates of ours and of solvephase from the same frames, and the time of them."""
    theirs = SolvephaseFit.of(calibration, COMMANDS_OPD_NM)
    commands = COMMANDS_OPD_NM.tolist()
    times: dict[str, list[float]] = {}
    differences: dict[str, list[float]] = {RETRIEVE: [], SOLVE: []}
    generator = np.random.default_rng(2)
    for trial in range(fits):
        truth = wavefront_opd_nm(generator)
        frames = [
            draw_frame(expected_frame(calibration, truth - command), 3.0, f"{trial:032x}", index)
            for index, command in enumerate(COMMANDS_OPD_NM)
        ]
        stacked = np.array(frames)
        likelihood = likelihood_of(calibration, frames, commands)
        found: dict[str, Any] = {}

        def act(name: str, call: Any) -> Any:
            return lambda: found.__setitem__(name, call())  # noqa: B023 - called in this round

        acts = {
            PROBE: probe(),
            FIT: act(FIT, lambda: fit(calibration, frames, commands)),  # noqa: B023
            RETRIEVE: act(RETRIEVE, lambda: theirs.retrieve(stacked)),  # noqa: B023
            ONE_START: lambda: run_from(likelihood, np.zeros(6), calibration, []),  # noqa: B023
            SOLVE: act(SOLVE, lambda: theirs.solve(stacked)),  # noqa: B023
        }
        for name, values in alternating(acts, 1).items():
            times.setdefault(name, []).extend(values)
        result = found[FIT]
        sigma = np.sqrt(np.diag(np.array(result.covariance_nm2)))
        for name, all_ in differences.items():
            step = np.abs(np.array(result.estimate_opd_nm) - found[name])
            all_.append(float(np.max(step / sigma)))
    return {
        "ms": _milliseconds(times),
        "ratio": {name: ratios(times, ours, name) for name, (ours, _) in FIT_TARGETS.items()},
        "largest_difference_sigma": {name: quantiles(all_) for name, all_ in differences.items()},
        "profile": fit_profile(calibration, likelihood),
    }


def fit_profile(calibration: Calibration, likelihood: Any) -> dict[str, Any]:
    """How often the fits evaluate, and what an evaluation takes, ms."""
    runs: list[Any] = []

    def all_starts() -> None:
        for start in starts_opd_nm(calibration):
            runs.append(run_from(likelihood, start, calibration, runs))

    counts = {
        FIT: evaluations(likelihood, all_starts),
        ONE_START: evaluations(
            likelihood, lambda: run_from(likelihood, np.zeros(6), calibration, [])
        ),
    }
    images = likelihood._imaged(np.ones(6))  # noqa: SLF001
    acts = {
        "objective": lambda: likelihood._imaged(np.ones(6)),  # noqa: SLF001
        "derivatives": lambda: likelihood._point(images),  # noqa: SLF001
    }
    return {
        "evaluations": counts,
        "statuses": [run.status for run in runs],
        "ms": _milliseconds(alternating(acts, 20, CALLS)),
    }


def evaluations(likelihood: Any, search: Callable[[], object]) -> dict[str, int]:
    """How often a search asks for the objective and for the derivatives."""
    imaged, point = likelihood._imaged, likelihood._point  # noqa: SLF001 - counts its calls
    with (
        mock.patch.object(likelihood, "_imaged", wraps=imaged) as objective,
        mock.patch.object(likelihood, "_point", wraps=point) as derivatives,
    ):
        search()
    return {"objective": objective.call_count, "derivatives": derivatives.call_count}


def _milliseconds(times: dict[str, list[float]]) -> dict[str, Any]:
    return {name: quantiles([1000 * value for value in values]) for name, values in times.items()}


def measured(rounds: int, fits: int) -> dict[str, Any]:
    """Everything, as one document."""
    document: dict[str, Any] = {"machine": machine(PACKAGES), "conventions": CONVENTIONS}
    document["frames"] = {"photons": 30_000, "read_noise_e": 3.0, "wavelength_nm": 850.0}
    document["sizes"] = {}
    with one_blas_thread():
        for size in SIZES:
            calibration = calibration_of(size)
            document["sizes"]["/".join(f"{number:g}" for number in size)] = {
                "psf": psf_figures(calibration, rounds),
                "fit": fit_figures(calibration, fits),
            }
    document["targets"] = targets(document["sizes"])
    document["fused_kernel"] = {
        "import_numba_s": import_s("numba"),
        "vector_tangent": VECTOR_TANGENT in runtime.capture()["cpu_features"],
    }
    return document


def import_s(module: str) -> dict[str, float]:
    """What importing a module takes in a new interpreter, seconds."""

    def started(program: str) -> Any:
        return lambda: subprocess.run([sys.executable, "-c", program], check=True)

    times = alternating({"bare": started("pass"), module: started(f"import {module}")}, STARTS)
    return quantiles([t - bare for t, bare in zip(times[module], times["bare"], strict=True)])


def targets(sizes: dict[str, Any]) -> list[dict[str, Any]]:
    """Each row of the table of figures that this script can measure."""
    rows = []
    for size, figures in sizes.items():
        psf, fitted = figures["psf"], figures["fit"]
        for peer, target in PSF_TARGETS.get(int(size.partition("/")[0]), {}).items():
            rows.append(_row("one image", peer, size, psf["ratio"][peer], target))
        for peer, (ours, target) in FIT_TARGETS.items():
            rows.append(_row(ours, peer, size, fitted["ratio"][peer], target))
    return rows


def _row(ours: str, peer: str, size: str, ratio: dict[str, float], target: float) -> dict[str, Any]:
    return {
        "what": f"{ours}, against {peer}",
        "ours": ours,
        "peer": peer,
        "size": size,
        "target": target,
        "ratio": ratio,
        "verdict": verdict(ratio, target),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Compare camera and estimator with their peers.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--fits", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    require_one_thread()
    document = measured(given.rounds, given.fits)
    print(json.dumps(document) if given.json else "\n".join(markdown(document)))


if __name__ == "__main__":
    main()
