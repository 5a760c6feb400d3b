"""Run the whole fault suite and keep in docs/reliability.json what it counted.

    uv run python scripts/faults.py [--only PART ...] [--workers N]

What `make test` runs a share of is run whole here.  Nothing is kept of a run in
which a test failed, or of a part of the suite.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.benchmarks.timing import machine

REPOSITORY = Path(__file__).resolve().parent.parent
KEPT = REPOSITORY / "docs" / "reliability.json"
PACKAGES = ("pytest", "hypothesis", "numpy", "orjson")
WHOLE = {"PROBEBENCH_FAULTS": "full"}


@dataclass(frozen=True)
class Part:
    """Some tests, and the variables under which they run whole."""

    tests: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: WHOLE)


PARTS = {
    "kills": Part(["test_kills.py"], {**WHOLE, "PROBEBENCH_KILLS": "500"}),
    "system calls": Part(["test_system_calls.py"]),
    "full disks": Part(["test_full_disk.py"]),
    "outages": Part(["test_outages.py"]),
    "tampering": Part(
        ["test_tamper.py", "test_forgeries.py", "test_forged_fits.py", "test_witnesses.py"]
    ),
    "fuzzing": Part(
        ["test_fuzz_lines.py", "test_fuzz_records.py", "test_fuzz_configs.py", "test_corpus.py"],
        {**WHOLE, "PROBEBENCH_FUZZ": "1000000"},
    ),
}


@dataclass
class Ran:
    """What became of a part: how long it took, and its tests by how they ended."""

    run_s: int
    passed: int
    failed: int
    skipped: int


def run(part: Part, counts: Path, workers: int) -> Ran:
    """Run the tests of a part; they add lines to the file of counts."""
    report = counts.with_suffix(".xml")
    started = time.perf_counter()
    pytest = [sys.executable, "-m", "pytest", "--quiet", "-rfE", f"--junitxml={report}"]
    spread = [f"--numprocesses={workers}", "--dist=worksteal"]
    subprocess.run(
        [*pytest, *spread, *(f"tests/faults/{name}" for name in part.tests)],
        env={**os.environ, **part.environment, "PROBEBENCH_COUNTS": str(counts)},
        cwd=REPOSITORY,
        check=False,
    )
    run_s = round(time.perf_counter() - started)
    suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - pytest's own file
    total = Counter[str]()
    for suite in suites:
        total.update({key: int(suite.get(key, "0")) for key in ("tests", *ENDS)})
    failed = total["failures"] + total["errors"]
    return Ran(run_s, total["tests"] - failed - total["skipped"], failed, total["skipped"])


ENDS = ("failures", "errors", "skipped")


def summed(counts: Path) -> list[dict[str, Any]]:
    """All that was counted of one kind and one environment together, in order."""
    total: dict[tuple[str, str], int] = {}
    for line in counts.read_text(encoding="utf-8").splitlines():
        counted = json.loads(line)
        key = (counted["what"], counted["subject"])
        total[key] = total.get(key, 0) + counted["number"]
    return [
        {"what": what, "subject": subject, "number": number}
        for (what, subject), number in sorted(total.items())
    ]


def tools() -> dict[str, str]:
    """Versions of what is not Python's."""
    strace = shutil.which("strace")
    said = "" if strace is None else subprocess.check_output([strace, "-V"], text=True)
    return {"kernel": platform.release(), "strace": said.partition("\n")[0] or "not installed"}


def main() -> int:
    """Run the parts that are asked for and keep what they counted."""
    parser = argparse.ArgumentParser(description="Run the whole fault suite.")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="keep nothing, run these")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    document: dict[str, Any] = {"machine": machine(PACKAGES), "tools": tools(), "parts": {}}
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.jsonl"
        counts.touch()
        for name, part in PARTS.items():
            if given.only is None or name in given.only:
                print(f"faults: {name}", file=sys.stderr)
                document["parts"][name] = vars(run(part, counts, given.workers))
        document["counts"] = summed(counts)
    for counted in document["counts"]:
        print(f"{counted['number']:>9,}  {counted['what']}: {counted['subject']}")
    failed = sum(part["failed"] for part in document["parts"].values())
    print(f"{failed} tests failed", file=sys.stderr)
    if failed == 0 and given.only is None:
        KEPT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
