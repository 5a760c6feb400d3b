"""Timings that stand on a noisy machine: alternating runs, medians, paired ratios."""

from __future__ import annotations

import datetime as dt
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

Act = Callable[[], object]
Quantiles = dict[str, float]

PROBE = "probe"  # the name of the machine's own reference load among the timed acts


def quantiles(values: Sequence[float]) -> Quantiles:
    """Median, quartiles and number of some values."""
    if len(values) == 1:
        return {"median": values[0], "q1": values[0], "q3": values[0], "n": 1}
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "q1": q1, "q3": q3, "n": len(values)}


def alternating(acts: Mapping[str, Act], rounds: int, calls: int = 1) -> dict[str, list[float]]:
    """Time every act once a round, in turn; seconds a call by act.

    In each round an act is called once untimed, so that it finds its own data in
    the processor's caches, then ``calls`` times.  Every second round goes
    backwards, so that none is always second to the same other.
    """
    times: dict[str, list[float]] = {name: [] for name in acts}
    for round_ in range(rounds):
        names = list(acts)[:: 1 if round_ % 2 == 0 else -1]
        for name in names:
            act = acts[name]
            act()
            started = time.perf_counter()
            for _ in range(calls):
                act()
            times[name].append((time.perf_counter() - started) / calls)
    return times


def ratios(times: Mapping[str, Sequence[float]], ours: str, theirs: str) -> Quantiles:
    """How many times as long theirs took, round by round."""
    return quantiles([t / o for o, t in zip(times[ours], times[theirs], strict=True)])


THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "AOCORE_BLAS_THREADS",
    "AOCORE_FFT_WORKERS",
)


def require_one_thread() -> None:
    """Start this script again with one thread for every library that is compared.

    Most libraries read these variables when they load, which is too late for
    a script to set them.
    """
    if any(os.environ.get(name) != "1" for name in THREAD_VARIABLES):
        single = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
        os.execve(sys.executable, [sys.executable, *sys.argv], single)  # noqa: S606 - itself


def probe() -> Act:
    """A fixed load of the kind that is measured; how its time scatters is the machine's noise."""
    matrix = np.linspace(-1, 1, 96 * 96).reshape(96, 96)

    def load() -> object:
        product = matrix
        for _ in range(8):
            product = np.tan(matrix @ product / 96)
        return product

    return load


def verdict(ratio: Quantiles, target: float) -> str:
    """Whether a ratio reaches its target: "met", "within its spread", or "missed"."""
    if ratio["median"] >= target:
        return "met"
    return "within its spread" if ratio["q3"] >= target else "missed"


def machine(packages: Sequence[str]) -> dict[str, Any]:
    """What the figures were measured on, and when."""
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "load_at_start": os.getloadavg()[0],
        "versions": {name: metadata.version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
