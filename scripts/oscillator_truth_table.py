"""Score every class of topologies on the truth vectors, and write the compact table.

    uv run python scripts/oscillator_truth_table.py --output work/truth.jsonl

Verdicts on all 4,096 vectors of each class are appended to the output as they
are found, and a run that was stopped goes on from there.  Classes that cannot
oscillate by their structure are not simulated.  At the end the counts go to
probebench/environments/oscillator/truth_table.py; with --check they are
compared with the table that is there instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from probebench.environments.oscillator import evaluator
from probebench.environments.oscillator.kinetics import VectorSet, kinetic_vectors, vectors_sha256
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.reference import TRUTH_SEED, TRUTH_VECTORS
from probebench.environments.oscillator.scoring import judge_compiled
from probebench.wire.oscillator import all_keys, edges_of
from probebench.wire.oscillator_structure import is_silent

TABLE = Path(evaluator.__file__).parent / "truth_table.py"
PAGE = '''"""Hidden: how many of the truth vectors make each class oscillate.

Written by scripts/oscillator_truth_table.py; do not edit.  Three hexadecimal
digits for every class that its structure does not silence, in the dictionary
order of the keys.
"""

from __future__ import annotations

VECTORS_SHA256 = "{vectors}"
TABLE_SHA256 = "{table}"
COUNTS = (
{counts}
)
'''


def header() -> dict[str, Any]:
    """What a saved verdict depends on beside its class."""
    vectors = kinetic_vectors(TRUTH_SEED, VectorSet.TRUTH, TRUTH_VECTORS)
    return {"vectors_sha256": vectors_sha256(vectors), "method": METHOD._asdict()}


def saved(path: Path) -> dict[str, str]:
    """Verdicts of an earlier run, as packed bits in hex, by key."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(header()) + "\n", encoding="utf-8")
        return {}
    text = path.read_text(encoding="utf-8")
    # A line that the last run did not finish is dropped from the file too.
    whole = text[: text.rfind("\n") + 1]
    first, *lines = whole.splitlines()
    if json.loads(first) != header():
        raise SystemExit(f"{path} holds verdicts of other vectors or another method; move it away")
    path.write_text(whole, encoding="utf-8")
    return {row["key"]: row["verdicts"] for row in map(json.loads, lines)}


def verdicts(key: str) -> tuple[str, str]:
    """One class: its key, and its verdicts as packed bits in hex."""
    vectors = kinetic_vectors(TRUTH_SEED, VectorSet.TRUTH, TRUTH_VECTORS)
    found = judge_compiled(edges_of(key), vectors)
    return key, np.packbits(found.oscillates).tobytes().hex()


def simulated(keys: list[str], workers: int) -> Iterator[tuple[str, str]]:
    """Verdicts of each class in turn; the kernel leaves the interpreter's lock."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(verdicts, keys)


def completed(path: Path, workers: int) -> dict[str, int]:
    """The count of every class that is simulated, from the file and from what it lacks."""
    rows = saved(path)
    keys = [key for key in all_keys() if not is_silent(edges_of(key))]
    missing = [key for key in keys if key not in rows]
    with path.open("a", encoding="utf-8") as lines:
        found = simulated(missing, workers)
        for key, bits in track(found, description="classes", total=len(missing)):
            rows[key] = bits
            lines.write(json.dumps({"key": key, "verdicts": bits}) + "\n")
            lines.flush()
    return {key: int.from_bytes(bytes.fromhex(rows[key])).bit_count() for key in keys}


def page(counts: dict[str, int]) -> str:
    """The module with the compact table."""
    table = "".join(f"{key} {count}\n" for key, count in counts.items())
    digits = textwrap.wrap("".join(f"{count:03x}" for count in counts.values()), 90)
    return PAGE.format(
        vectors=header()["vectors_sha256"],
        table=hashlib.sha256(table.encode()).hexdigest(),
        counts="\n".join(f'    "{line}"' for line in digits),
    )


def main() -> None:
    """Score, then write or compare."""
    parser = argparse.ArgumentParser(description="Build the table of exact truth.")
    parser.add_argument("--output", type=Path, required=True, help="verdicts, one class a line")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    given = parser.parse_args()
    started = time.perf_counter()
    counts = completed(given.output, given.workers)
    print(f"{len(counts)} classes in {time.perf_counter() - started:.0f} s")
    if given.check:
        if TABLE.read_text(encoding="utf-8") != page(counts):
            raise SystemExit(f"the table of {TABLE.name} is another one")
        print("the table is the checked-in one")
        return
    TABLE.write_text(page(counts), encoding="utf-8")


if __name__ == "__main__":
    main()
