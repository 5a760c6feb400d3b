"""Run every benchmark and write docs/benchmarks.md from what they measured.

    uv run --group bench python scripts/benchmarks/report.py [--render] [--only NAME ...]

Each benchmark prints one JSON document, which is kept in docs/benchmarks/ and
rendered.  --render measures nothing: it renders the documents that are kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.benchmarks import optical_tables, turns
from scripts.benchmarks.limit_studies import tables

REPOSITORY = Path(__file__).resolve().parent.parent.parent
KEPT = Path("docs/benchmarks")
PAGE = Path("docs/benchmarks.md")

Lines = Callable[[dict[str, Any]], list[str]]


@dataclass(frozen=True)
class Benchmark:
    """One script, the part of the page that it fills, and what is said above its tables."""

    name: str
    title: str
    words: str
    markdown: Lines

    @property
    def command(self) -> str:
        """As a user types it."""
        return f"uv run --group bench python scripts/benchmarks/{self.name}.py"


BENCHMARKS = (
    Benchmark(
        "optical",
        "Camera and estimator beside the packages of the field",
        "The same pupil, modes, detector, frames and noise for all; double precision; one thread. "
        "Sizes are pupil samples / detector pixels / pixels per lambda/D. A ratio is how many "
        "times as long the peer took in the same round; in every round each act ran once to fill "
        "the caches and then ten times, fits once. Peers are called as their users call them, "
        "with whatever object they let one build beforehand built beforehand. A target counts as "
        "reached when it lies within the quartiles of the ratio.",
        optical_tables.markdown,
    ),
    Benchmark(
        "limits",
        "The physical limit",
        "How near fits come to the Cramer-Rao bound, how often they end in the right basin, and "
        "what the choice of probes does. Seeds are fixed: another run gives the same figures. ",
        tables.markdown,
    ),
    Benchmark(
        "turns",
        "What the driver costs",
        "A session of the development configuration with a client in the same process, so that "
        "no time of a client counts; its verification; and starts of the installed commands.",
        turns.markdown,
    ),
)

HEAD = """# Benchmarks

Written by `make bench` from the documents in [benchmarks/](benchmarks/), which
it measures anew; nothing here is typed by hand. Times are of one machine and
one evening: compare within a table, not between machines.
"""


def run(benchmark: Benchmark, extra: Sequence[str] = ()) -> None:
    """Measure and keep the document."""
    started = time.perf_counter()
    script = REPOSITORY / "scripts" / "benchmarks" / f"{benchmark.name}.py"
    done = subprocess.run(
        [sys.executable, script, "--json", *extra], stdout=subprocess.PIPE, text=True, check=True
    )
    document = {**json.loads(done.stdout), "run_s": round(time.perf_counter() - started)}
    kept = REPOSITORY / KEPT / f"{benchmark.name}.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def page(benchmarks: Sequence[Benchmark] = BENCHMARKS) -> str:
    """The page, rendered from the documents that are kept."""
    lines = [HEAD]
    for benchmark in benchmarks:
        kept = REPOSITORY / KEPT / f"{benchmark.name}.json"
        document = json.loads(kept.read_text(encoding="utf-8"))
        lines += [f"## {benchmark.title}\n", f"    {benchmark.command}\n", f"{benchmark.words}\n"]
        lines += [*made_on(document), *benchmark.markdown(document), ""]
    return "\n".join(lines)


def made_on(document: dict[str, Any]) -> list[str]:
    """One sentence on machine, date and versions."""
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    where = f"on {machine['processors']} processors ({machine['processor']})"
    load = f"load {machine['load_at_start']:.1f} at the start"
    made = f"Measured {machine['date']} {where}, {load}, in {document['run_s']} s"
    return [f"{made}; Python {machine['python']}, {versions}.\n"]


def main() -> None:
    """Measure what is asked for and write the page."""
    parser = argparse.ArgumentParser(description="Run the benchmarks and write their page.")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--only", nargs="+", choices=[each.name for each in BENCHMARKS])
    given = parser.parse_args()
    for benchmark in BENCHMARKS:
        if not given.render and (given.only is None or benchmark.name in given.only):
            print(benchmark.name, file=sys.stderr)
            run(benchmark)
    (REPOSITORY / PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
