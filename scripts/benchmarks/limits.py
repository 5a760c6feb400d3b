"""How near the estimator comes to the physical limit, and what limits it.

    uv run python scripts/benchmarks/limits.py [--json] [--trials 500] [--quick]

Prints three studies, as tables or as one JSON document: the RMS error of fits
over the Cramer-Rao floor, photons by read noise; how often the estimate lies in
the right basin, by wavelength, incident RMS and number of images; and which
commands lower the floor most.

Seeds are fixed. The figures are the same for any number of processes, and on
another machine but for the last bits of its arithmetic; only "seconds" changes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, replace
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np

from scripts.benchmarks.limit_studies import design_study
from scripts.benchmarks.limit_studies.estimates import basin_figures, ratio_figures
from scripts.benchmarks.limit_studies.tables import markdown
from scripts.benchmarks.limit_studies.trials import (
    DEVELOPMENT,
    INCIDENT_RMS_NM,
    Scene,
    Trial,
    run,
)
from scripts.benchmarks.timing import machine

PHOTONS = (300, 1_000, 10_000, 100_000, 1_000_000)
READ_NOISE_E = (1.0, 3.0, 5.0)
# Below it the ratio is reported, and nothing is claimed of it.
CLAIMED_FROM_PHOTONS = 1_000
WAVELENGTHS_NM = (633.0, 850.0, 1550.0)
# The last is more than a configuration may ask for; it shows where starts fail.
INCIDENT_NM = (60.0, 100.0, 150.0, 200.0, 300.0)
# A claim of 99.5 % takes a thousand trials: the rows of the claim share them, for
# each number of images.  The other rows show how it fades, with a tenth.
CLAIMED_TO_NM = 150.0
QUICK_TRIALS = 20


def efficiency_study(executor: Executor, trials: int) -> dict[str, Any]:
    """RMS error over the floor for each number of photons and each read noise."""
    cells = list(product(PHOTONS, READ_NOISE_E))
    scenes = [
        Scene(
            f"efficiency {photons} {read_noise_e}",
            replace(DEVELOPMENT, photons_per_exposure=photons, read_noise_e=read_noise_e),
            design_study.TWO,
        )
        for photons, read_noise_e in cells
    ]
    done = run(executor, [(scene, trials) for scene in scenes])
    found = [
        {
            "photons": photons,
            "read_noise_e": read_noise_e,
            **basin_figures(of_cell),
            **ratio_figures(of_cell),
        }
        for (photons, read_noise_e), of_cell in zip(cells, done, strict=True)
    ]
    return {
        "commands_opd_nm": design_study.TWO,
        "incident_rms_nm": INCIDENT_RMS_NM,
        "cells": found,
        "summary": efficiency_summary(found),
    }


def efficiency_summary(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Extremes and averages over the cells for which something is claimed."""
    claimed = [cell for cell in cells if cell["photons"] >= CLAIMED_FROM_PHOTONS]
    summary: dict[str, Any] = {
        "from_photons": CLAIMED_FROM_PHOTONS,
        "cells": len(claimed),
        "trials": sum(cell["trials"] for cell in claimed),
        "wrong_basin": sum(cell["trials"] - cell["right_basin"] for cell in claimed),
    }
    for prefix in ("", "controlled_"):
        ratios = [cell[f"{prefix}ratio"] for cell in claimed]
        errors = np.array([cell[f"{prefix}standard_error"] for cell in claimed])
        summary[f"{prefix}least"], summary[f"{prefix}most"] = min(ratios), max(ratios)
        summary[f"{prefix}average"] = float(np.mean(ratios))
        # The cells are independent.
        summary[f"{prefix}standard_error"] = float(np.sqrt(np.sum(errors**2)) / len(errors))
    return summary


def basin_study(executor: Executor, trials: int) -> dict[str, Any]:
    """Rates of the right basin by wavelength, incident RMS and number of images."""
    cells = list(product(WAVELENGTHS_NM, INCIDENT_NM, (design_study.TWO, design_study.THREE)))
    scenes = [
        Scene(
            f"basin {wavelength_nm} {rms_nm} {len(commands)}",
            replace(DEVELOPMENT, wavelength_nm=wavelength_nm),
            commands,
            (rms_nm, rms_nm),
        )
        for wavelength_nm, rms_nm, commands in cells
    ]
    done = run(executor, [(scene, row_trials(scene, trials)) for scene in scenes])
    rows = [
        {
            "wavelength_nm": wavelength_nm,
            "incident_rms_nm": rms_nm,
            "images": len(commands),
            **basin_figures(of_cell),
        }
        for (wavelength_nm, rms_nm, commands), of_cell in zip(cells, done, strict=True)
    ]
    return {
        "commands_opd_nm": [design_study.TWO, design_study.THREE],
        "rows": rows,
        "claimed": claimed_rates(scenes, done),
    }


def claimed_rates(scenes: Sequence[Scene], done: Sequence[list[Trial]]) -> list[dict[str, Any]]:
    """The rows for which something is claimed, taken together by number of images."""
    found = []
    for commands in (design_study.TWO, design_study.THREE):
        together = [
            one
            for scene, trials in zip(scenes, done, strict=True)
            if is_claimed(scene) and scene.commands_opd_nm == commands
            for one in trials
        ]
        found.append(
            {
                "wavelength_nm": DEVELOPMENT.wavelength_nm,
                "incident_rms_to_nm": CLAIMED_TO_NM,
                "images": len(commands),
                **basin_figures(together),
            }
        )
    return found


def is_claimed(scene: Scene) -> bool:
    """Whether the right basin is claimed for the wavefronts of this scene."""
    default = scene.camera.wavelength_nm == DEVELOPMENT.wavelength_nm
    return default and scene.incident_rms_nm[1] <= CLAIMED_TO_NM


def row_trials(scene: Scene, trials: int) -> int:
    """So many trials has a row of the basin study."""
    if is_claimed(scene):
        return math.ceil(2 * trials / sum(rms_nm <= CLAIMED_TO_NM for rms_nm in INCIDENT_NM))
    return max(trials // 10, 2)


def designs_study(executor: Executor, trials: int) -> dict[str, Any]:
    """Which commands lower the floor most."""
    return design_study.study(executor, max(trials // 8, 4), max(trials // 2, 4))


STUDIES: dict[str, Callable[[Executor, int], dict[str, Any]]] = {
    "efficiency": efficiency_study,
    "basins": basin_study,
    "designs": designs_study,
}


def limits(trials: int, processes: int) -> dict[str, Any]:
    """All studies as one document."""
    seconds: dict[str, float] = {}
    document: dict[str, Any] = {
        "trials": trials,
        "processes": processes,
        "machine": machine(("numpy", "scipy")),
        "camera": asdict(DEVELOPMENT),
    }
    # Not forked: a copy of threads that the parent runs is none.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as executor:
        for name, study in STUDIES.items():
            started = time.perf_counter()
            document[name] = study(executor, trials)
            seconds[name] = time.perf_counter() - started
    return {**document, "seconds": seconds}


def main() -> None:
    """Study and print."""
    parser = argparse.ArgumentParser(description="Study how near the estimator is to the limit.")
    parser.add_argument("--trials", type=int, default=500, help="of a cell of the first study")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_TRIALS} trials")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.trials < QUICK_TRIALS:
        parser.error(f"--trials must be at least {QUICK_TRIALS}; fewer have no standard error")
    document = limits(QUICK_TRIALS if given.quick else given.trials, given.processes)
    print(json.dumps(document, allow_nan=False) if given.json else "\n".join(markdown(document)))


if __name__ == "__main__":
    main()
