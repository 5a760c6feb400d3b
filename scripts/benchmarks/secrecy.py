"""What guessing a seed costs, and what the time of an exposure tells of the wavefront.

    uv run python scripts/benchmarks/secrecy.py

Guessing: an agent that has fitted the wavefront draws the six coefficients of
one seed after the other and compares.  Timing: many wavefronts, each exposed
under the zero command; the rank correlation of what is hidden with the time
that this takes, and with the peak of the image, which the agent is given.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.fixture import Instrument, incident_opd_nm

CONFIG = Path(__file__).parents[2] / "configs" / "agent_protocol_development.json"
YEAR_S = 365.25 * 86_400
GUESSES = 20_000
WAVEFRONTS = 4000
EXPOSURES_EACH = 5


def with_fresh_seeds(config: OpticalConfig) -> OpticalConfig:
    """The same camera behind another wavefront."""
    seeds = {name: secrets.token_hex(16) for name in ("wavefront_seed", "detector_seed")}
    return config.model_copy(update={"fixture": config.fixture.model_copy(update=seeds)})


def guesses_per_s(config: OpticalConfig) -> float:
    """Seeds that one core tries in a second, one at a time."""
    candidates = [with_fresh_seeds(config) for _ in range(GUESSES)]
    started = time.perf_counter()
    for candidate in candidates:
        incident_opd_nm(candidate)
    return GUESSES / (time.perf_counter() - started)


def exposure(instrument: Instrument) -> tuple[float, float]:
    """Least time of several equal exposures under the zero command, s, and their peak, e."""
    times, peak_e = [], 0.0
    for _ in range(EXPOSURES_EACH):
        started = time.perf_counter()
        frame_e = instrument.expose([0.0] * 6, 0)
        times.append(time.perf_counter() - started)
        peak_e = float(frame_e.max())
    return min(times), peak_e


def main() -> None:
    """Print both."""
    config = OpticalConfig.model_validate_json(CONFIG.read_bytes())
    rate = guesses_per_s(config)
    print(f"guesses of one core: {rate:.3g} a second; {2**128 / rate / YEAR_S:.2g} years for 2^128")
    print(f"at 10^12 a second: {2**128 / 1e12 / YEAR_S:.2g} years")
    rows = []
    for number in range(WAVEFRONTS + 1):
        hidden = with_fresh_seeds(config)
        wavefront = incident_opd_nm(hidden)
        seen = exposure(Instrument(hidden))
        if number:  # the first one warms up
            rows.append([*seen, float(np.linalg.norm(wavefront)), *map(abs, wavefront)])
    table = np.array(rows)
    print(f"exposures: median {np.median(table[:, 0]) * 1e3:.3f} ms over {WAVEFRONTS} wavefronts")
    print(f"rank correlations; chance stays within {2 / WAVEFRONTS**0.5:.2f}:")
    names = ["RMS wavefront error", *(f"size of coefficient {k}" for k in range(6))]
    for name, column in zip(names, table[:, 2:].T, strict=True):
        by_time, by_peak = (spearmanr(table[:, k], column).statistic for k in (0, 1))
        print(f"  {name:21} time {by_time:+.2f}, peak of the image {by_peak:+.2f}")


if __name__ == "__main__":
    main()
