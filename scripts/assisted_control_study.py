"""How well the assisted control does over many fresh development configurations.

Two images, under the zero command and under 80 nm of defocus, one fit, and
the suggested command judged by the hidden wavefront.

    uv run python scripts/assisted_control_study.py [--configs 100] [--json]

Seeds are derived from --root, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from probebench.environments.optical import config as configuration
from probebench.environments.optical.camera import calibration
from probebench.environments.optical.estimator import fit
from probebench.environments.optical.evaluator import evaluate
from probebench.environments.optical.fixture import Instrument

COMMANDS_OPD_NM = [[0.0] * 6, [80.0, 0.0, 0.0, 0.0, 0.0, 0.0]]


@dataclass(frozen=True)
class Trial:
    """One configuration.  WFE and floor in nm RMS; fit_s in seconds."""

    incident_nm: float
    wfe_nm: float
    floor_nm: float
    other_basins: int
    fit_s: float


def derived_config(root: str, index: int, preset: str) -> configuration.OpticalConfig:
    """The configuration of one trial."""
    drawn = 0

    def entropy(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return hashlib.sha256(f"{root} {index} {drawn}".encode()).digest()[:count]

    return configuration.parse(
        configuration.fresh_config(entropy, "tool_assisted", f"{root} {index}", preset)
    )


def trial(root: str, index: int, preset: str = "default") -> Trial:
    """Expose twice, fit, apply the suggestion, judge."""
    config = derived_config(root, index, preset)
    instrument = Instrument(config)
    frames_e = [instrument.expose(command, i) for i, command in enumerate(COMMANDS_OPD_NM)]
    started = time.perf_counter()
    result = fit(calibration(config), frames_e, COMMANDS_OPD_NM)
    fit_s = time.perf_counter() - started
    judged = evaluate(config, COMMANDS_OPD_NM, result.suggested_command_opd_nm)
    return Trial(
        incident_nm=judged["zero_command_wfe_nm_rms"],
        wfe_nm=judged["residual_wfe_nm_rms"],
        floor_nm=judged["cramer_rao_floor_nm_rms"],
        other_basins=len(result.other_basins),
        fit_s=fit_s,
    )


def summary(trials: list[Trial]) -> dict[str, Any]:
    """Counts and quantiles."""
    ratios = np.array([t.wfe_nm / t.floor_nm for t in trials])
    wfe_nm = np.array([t.wfe_nm for t in trials])
    return {
        "configs": len(trials),
        "within_twice_the_floor": int(np.sum(ratios <= 2)),
        "above_5_nm": int(np.sum(wfe_nm > 5)),
        "worst_wfe_nm_rms": float(wfe_nm.max()),
        "rms_of_wfe_over_floor": float(np.sqrt(np.mean(ratios**2))),
        "quantiles_of_wfe_over_floor": {
            str(q): float(np.quantile(ratios, q)) for q in (0.05, 0.5, 0.95, 0.99)
        },
        "with_other_basins": sum(t.other_basins > 0 for t in trials),
        "median_fit_s": float(np.median([t.fit_s for t in trials])),
    }


def main() -> None:
    """Run the study and print it."""
    parser = argparse.ArgumentParser(description="Study the assisted control.")
    parser.add_argument("--configs", type=int, default=100)
    parser.add_argument("--root", default="probebench assisted control study")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    trials = [trial(given.root, index, given.preset) for index in range(given.configs)]
    found = summary(trials)
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name.replace('_', ' ')}: {value}")


if __name__ == "__main__":
    main()
