"""The study of designs: search on some wavefronts, report on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from probebench.environments.optical.propagation import Reals
from scripts.benchmarks.limit_studies.designs import (
    Design,
    best_designs,
    floor_figures,
    informations,
    probes,
    rms_floor_nm,
    total,
    wavefronts,
)
from scripts.benchmarks.limit_studies.estimates import basin_figures, ratio_figures
from scripts.benchmarks.limit_studies.trials import (
    DEVELOPMENT,
    PROBE,
    ZERO,
    Command,
    Scene,
    run,
)

OPPOSITE: Command = (-PROBE[0], *PROBE[1:])
TWO: Design = (ZERO, PROBE)
THREE: Design = (ZERO, PROBE, OPPOSITE)
BEST = 3
REPORTED_WAVEFRONTS = 200


def study(executor: Executor, search_wavefronts: int, trials: int) -> dict[str, Any]:
    """Floors of the default designs and of the best, and how fits of the best do.

    A design that was chosen because it is the least of many would look better
    than it is on the wavefronts that chose it; so it is reported on others.
    """
    candidates = [ZERO, *probes()]
    searched = informations(
        executor, DEVELOPMENT, wavefronts("search", search_wavefronts), candidates
    )
    two, three = (best_designs(searched, images, BEST) for images in (2, 3))
    named = [("default", TWO), ("default", THREE)]
    named += [(f"best {place}", design) for best in (two, three) for place, design in _placed(best)]
    used = sorted({PROBE, *(command for _, design in named for command in design)})
    of_command = informations(
        executor, DEVELOPMENT, wavefronts("report", REPORTED_WAVEFRONTS), used
    )
    return {
        "candidate_commands": len(candidates) - 1,
        "search_wavefronts": search_wavefronts,
        "reported_wavefronts": REPORTED_WAVEFRONTS,
        "designs": [
            {"design": "zero command alone", **_row(of_command, (ZERO,))},
            *({"design": name, **_row(of_command, design)} for name, design in named),
        ],
        "adapted": _adapted(executor, of_command),
        "fits": _fits(executor, (two[0], three[0]), trials),
    }


def _placed(designs: Sequence[Design]) -> Iterator[tuple[int, Design]]:
    return enumerate(designs, start=1)


def _row(of_command: dict[Command, Reals], design: Design) -> dict[str, Any]:
    commands = [list(command) for command in design]
    figures = floor_figures(total(of_command, design), total(of_command, TWO))
    return {"images": len(design), "commands_opd_nm": commands, **figures}


def _adapted(executor: Executor, of_command: dict[Command, Reals]) -> dict[str, Any]:
    """The best third image of one who knows the wavefront from the first two.

    Such a client sets the residual, not the command; the floor then supposes that
    its first estimate was right.
    """
    default = total(of_command, TWO)
    # Under no incident wavefront the residual is the command's negative.
    of_residual = informations(executor, DEVELOPMENT, np.zeros((1, 6)), probes())
    best = min(of_residual, key=lambda command: rms_floor_nm(default + of_residual[command]))
    figures = floor_figures(default + of_residual[best], default)
    residual = [0.0 - value for value in best]
    return {"images": 3, "third_residual_opd_nm": residual, **figures}


def _fits(executor: Executor, designs: Sequence[Design], trials: int) -> list[dict[str, Any]]:
    scenes = [Scene(f"design {design}", DEVELOPMENT, design) for design in designs]
    done = run(executor, [(scene, trials) for scene in scenes])
    return [
        {
            "images": len(design),
            "commands_opd_nm": [list(command) for command in design],
            **basin_figures(of_design),
            **ratio_figures(of_design),
        }
        for design, of_design in zip(designs, done, strict=True)
    ]
