"""What the driver costs: a turn, a verification, a cold start.

    uv run python scripts/benchmarks/turns.py [--repeats 5] [--json]

Prints medians with the smallest and largest of the repeats, in milliseconds.
Absolute times depend on the machine and its disk; compare within one run.
"""

from __future__ import annotations

import argparse
import json
import platform
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

from probebench.app.drive import TurnSeen
from probebench.app.registry import default_registry
from probebench.app.rig import Rig, machine_rig
from probebench.app.session import run_session
from probebench.app.verify import verify_folder
from probebench.host.filesystem import Filesystem
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import encode
from probebench.kernel.episode import Action, Ask, Final
from probebench.kernel.turn import Answer

SEEDS = bytes(range(16))


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
        "session over verify (ratio)": session_s / verify_s / 1000,
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


def measured(repeats: int) -> dict[str, list[float]]:
    """All figures, in milliseconds, a list of repeats each."""
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
            lambda folder: cold_start_figures(config_path, folder),
        ]
        for _ in range(repeats):
            for run in runs:
                for figure, seconds in run(root / "session").items():
                    figures.setdefault(figure, []).append(1000 * seconds)
                shutil.rmtree(root / "session")
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the driver costs.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = {
        figure: {"median": statistics.median(all_), "min": min(all_), "max": max(all_)}
        for figure, all_ in measured(given.repeats).items()
    }
    if given.json:
        print(json.dumps({"repeats": given.repeats, "machine": platform.machine(), "ms": rows}))
        return
    print(f"| figure | median / ms | min | max |  ({given.repeats} repeats)\n|---|---|---|---|")
    for figure, row in rows.items():
        print(f"| {figure} | {row['median']:.2f} | {row['min']:.2f} | {row['max']:.2f} |")


if __name__ == "__main__":
    main()
