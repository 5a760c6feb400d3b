"""What the driver costs: a turn, a verification, a cold start, and what of it is what.

    uv run python scripts/benchmarks/turns.py [--repeats 5] [--json]

Prints medians of the repeats with their quartiles, in milliseconds.  Absolute
times depend on the machine and its disk; compare within one run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from probebench.app.drive import TurnSeen
from probebench.app.registry import default_registry
from probebench.app.rig import Rig, machine_rig
from probebench.app.session import run_session
from probebench.app.verify import verify_folder
from probebench.environments.optical.camera import Calibration, draw_frame, expected_frame
from probebench.environments.optical.display import frame_png
from probebench.host.filesystem import Filesystem
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import decode, encode, sha256_hex
from probebench.kernel.episode import Action, Ask, Final
from probebench.kernel.turn import Answer
from scripts.benchmarks.timing import alternating, machine, quantiles

SEEDS = bytes(range(16))
PACKAGES = ("numpy", "scipy", "orjson", "pydantic", "typer", "rich", "pillow")
IMPORTS = (
    "probebench.cli",
    "typer",
    "rich",
    "pydantic",
    "orjson",
    "numpy",
    "threadpoolctl",
    "probebench.app.optical",
)
TARGETS = (
    ("exposure turn beyond its two publishes", "at most", 2.0),
    ("recorded driver time over verify (ratio)", "at least", 5.0),
    ("cold start to --help", "at most", 500.0),
    ("cold start to the first request", "at most", 1500.0),
)


class TimedFilesystem(Filesystem):
    """Adds up the time of the durable steps, so that it can be taken off."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    @contextmanager
    def step(self, step: str, name: str) -> Iterator[None]:
        """One step, timed."""
        started = time.perf_counter()
        try:
            with super().step(step, name):
                yield
        finally:
            self.spent_s += time.perf_counter() - started


class InstantClient:
    """Probes until the exposures are spent, estimates once, submits zero."""

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Any]:
        """Answer at once from the request."""
        del message
        body = ask.body
        action = {"protocol": body["protocol"], "request_id": body["request_id"]}
        spent = body["resources"]["spent"]
        if "expose" in body["available_actions"]:
            command = [10.0 * spent["exposures"], 0.0, 0.0, 0.0, 0.0, 0.0]
            action |= {"action": "expose", "command_opd_nm": command}
        elif spent["estimates"] == 0:
            action |= {"action": "estimate"}
        else:
            action |= {"action": "submit", "command_opd_nm": [0.0] * 6}
        return Answer(encode(action)), {"input_wait_s": 0.0, "deadline_s": ask.deadline_s}

    def farewell(self, final: Final, message: bytes) -> None:
        """Nobody is told."""

    def nested(self) -> InstantClient:
        """The same."""
        return self

    def close(self) -> None:
        """Nothing was started."""


class TurnTimes:
    """Wall and durable time of each exposure turn."""

    def __init__(self, filesystem: TimedFilesystem) -> None:
        self._filesystem = filesystem
        self._last = (time.perf_counter(), 0.0)
        self.beyond_publishes_s: list[float] = []
        self.publishes_s: list[float] = []
        self.fit_s = 0.0

    def opened(self, charge: Charge) -> None:
        """Start the clock of the first turn."""
        del charge
        self._last = (time.perf_counter(), self._filesystem.spent_s)

    def turn(self, seen: TurnSeen) -> None:
        """Note one turn."""
        now = (time.perf_counter(), self._filesystem.spent_s)
        wall, durable = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        if isinstance(seen.cause, Action) and seen.cause.name == "expose" and seen.turn > 1:
            self.beyond_publishes_s.append(wall - durable)
            self.publishes_s.append(durable)
        elif seen.task is not None:
            self.fit_s = wall - durable


def session_figures(config: Any, folder: Path) -> dict[str, float]:
    """Run and verify one session in this process; seconds by figure."""
    filesystem = TimedFilesystem()
    times = TurnTimes(filesystem)
    rig: Rig = replace(machine_rig(), filesystem=filesystem, observer=times)
    started = time.perf_counter()
    run_session(rig, folder, config, InstantClient())
    session_s = time.perf_counter() - started
    started = time.perf_counter()
    verdict = verify_folder(machine_rig(), folder)
    verify_s = time.perf_counter() - started
    if not verdict.verified:
        raise SystemExit(f"the benchmark's session does not verify: {verdict.failure}")
    return {
        "exposure turn beyond its two publishes": statistics.median(times.beyond_publishes_s),
        "the two durable publishes of a turn": statistics.median(times.publishes_s),
        "one fit of six images": times.fit_s,
        "session, driver time": session_s,
        "verify without refit": verify_s,
        "session over verify, both in this process (ratio)": session_s / verify_s / 1000,
    }


def control_figures(config_path: Path, folder: Path) -> dict[str, float]:
    """The control as a command; its driver time as its own records have it, and a verification.

    Unlike the session above it pays for loading scipy, as every assisted session does.
    """
    command = [sys.executable, "-m", "probebench", "control", "--quiet"]
    given = ["--config", str(config_path), "--output", str(folder)]
    subprocess.run([*command, *given], check=True, stdout=subprocess.DEVNULL)
    timings = [decode(path.read_bytes())["timing"] for path in folder.glob("turns/*_response.json")]
    recorded_s = sum(timing["driver_s"] + timing["task_s"] for timing in timings)
    started = time.perf_counter()
    verify_folder(machine_rig(), folder)
    verify_s = time.perf_counter() - started
    return {
        "control, recorded driver time": recorded_s,
        "verify of it": verify_s,
        "recorded driver time over verify (ratio)": recorded_s / verify_s / 1000,
    }


def cold_start_figures(config_path: Path, folder: Path) -> dict[str, float]:
    """Start the installed commands in new processes; seconds by figure."""
    command = [sys.executable, "-m", "probebench"]
    started = time.perf_counter()
    subprocess.run([*command, "--help"], check=True, stdout=subprocess.DEVNULL)
    help_s = time.perf_counter() - started
    given = ["session", "--quiet", "--config", str(config_path), "--output", str(folder)]
    started = time.perf_counter()
    with subprocess.Popen(
        [*command, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        if driver.stdout is None or driver.stdin is None or not driver.stdout.readline():
            raise SystemExit("the benchmark's session sent no request")
        request_s = time.perf_counter() - started
        driver.stdin.close()
    return {"cold start to --help": help_s, "cold start to the first request": request_s}


def measured(repeats: int) -> dict[str, Any]:
    """All figures, as one document."""
    fresh = default_registry()["optical"].fresh_config
    if fresh is None:
        raise SystemExit("the optical environment makes no configuration")
    config = fresh(lambda count: SEEDS[:count], {})
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        config_path = root / "config.json"
        config_path.write_bytes(encode(config))
        runs: list[Callable[[Path], dict[str, float]]] = [
            lambda folder: session_figures(config, folder),
            lambda folder: control_figures(config_path, folder),
            lambda folder: cold_start_figures(config_path, folder),
        ]
        for _ in range(repeats):
            for run in runs:
                for figure, seconds in run(root / "session").items():
                    figures.setdefault(figure, []).append(1000 * seconds)
                shutil.rmtree(root / "session")
    rows = {figure: quantiles(all_) for figure, all_ in figures.items()}
    return {
        "machine": machine(PACKAGES),
        "figures": rows,
        "targets": [_row(*target, rows) for target in TARGETS],
        "profile": {"turn_ms": turn_profile(), "import_ms": import_profile()},
    }


def _row(figure: str, sense: str, bound: float, rows: dict[str, Any]) -> dict[str, Any]:
    reached = rows[figure]
    at_most = sense == "at most"
    met = reached["median"] <= bound if at_most else reached["median"] >= bound
    near = reached["q1"] <= bound if at_most else reached["q3"] >= bound
    verdict = "met" if met else "within its spread" if near else "missed"
    return {
        "what": figure,
        "sense": sense,
        "target": bound,
        "reached": reached,
        "verdict": verdict,
    }


def turn_profile() -> dict[str, Any]:
    """What the driver computes in an exposure turn, step by step."""
    camera = Calibration(850.0, 64, 0.2, 32, 2.0, 30_000, 3.0, 200.0)
    residual_nm = np.array([60.0, -30.0, 20.0, 40.0, -25.0, 10.0])
    expected = expected_frame(camera, residual_nm)
    frame = draw_frame(expected, camera.read_noise_e, SEEDS.hex(), 0)
    rows = frame.tolist()
    encoded = encode(rows)
    acts = {
        "expected image": lambda: expected_frame(camera, residual_nm),
        "draw of photons and read noise": lambda: draw_frame(expected, 3.0, SEEDS.hex(), 0),
        "PNG": lambda: frame_png(frame, camera.photons_per_exposure),
        "canonical JSON of the frame": lambda: encode(rows),
        "SHA-256 of it": lambda: sha256_hex(encoded),
    }
    times = alternating(acts, 20, 10)
    return {name: quantiles([1000 * value for value in all_]) for name, all_ in times.items()}


def import_profile() -> dict[str, float]:
    """What the imports of ``--help`` and of a session take, with all that they import; ms."""
    found: dict[str, float] = {}
    for command in ("import probebench.cli", "import probebench.app.optical"):
        ran = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", command],
            capture_output=True,
            text=True,
            check=True,
        )
        for line in ran.stderr.splitlines():
            _, cumulative, name = line.removeprefix("import time:").split("|")
            if name.strip() in IMPORTS:
                found.setdefault(name.strip(), int(cumulative) / 1000)
    return found


def markdown(document: dict[str, Any]) -> list[str]:
    """The document as tables."""
    lines = ["| what | target | median | quartiles | |", "|---|---|---|---|---|"]
    for row in document["targets"]:
        unit = "" if "ratio" in row["what"] else " ms"
        reached = row["reached"]
        lines.append(
            f"| {row['what']} | {row['sense']} {row['target']:g}{unit} | {reached['median']:.2f}"
            f"{unit} | {reached['q1']:.2f} to {reached['q3']:.2f} | {row['verdict']} |"
        )
    lines += ["", "| figure | median / ms | quartiles |", "|---|---|---|"]
    for figure, row in document["figures"].items():
        lines.append(f"| {figure} | {row['median']:.2f} | {row['q1']:.2f} to {row['q3']:.2f} |")
    lines += ["", "| step of an exposure turn | ms |", "|---|---|"]
    for name, row in document["profile"]["turn_ms"].items():
        lines.append(f"| {name} | {row['median']:.3f} |")
    lines += ["", "| import, with all that it imports | ms |", "|---|---|"]
    lines += [f"| {name} | {ms:.0f} |" for name, ms in document["profile"]["import_ms"].items()]
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the driver costs.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    document = measured(given.repeats)
    print(json.dumps(document) if given.json else "\n".join(markdown(document)))


if __name__ == "__main__":
    main()
