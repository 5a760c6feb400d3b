"""Regenerate the golden transcripts of tests/vectors: whole sessions, fixed nonce and clock.

    uv run python scripts/regenerate_vectors.py [--output DIR]

A toy session is compared bytewise everywhere.  Of an optical one the frames
are compared exactly, and derived figures within the tolerance of
docs/formats.md.  Run this only when a format changed on purpose, with a line
in CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
# The toys and the constant rig are the tests' own.
sys.path.insert(0, str(REPOSITORY))

from probebench.kernel.canonical import decode, encode  # noqa: E402
from tests.conformance import Case  # noqa: E402
from tests.environments.test_conformance import CASES  # noqa: E402
from tests.journals import record_paths  # noqa: E402

GOLDEN = {
    "thermometer": CASES["thermometer"],
    "breeder": CASES["breeder"],
    "breeder_with_inner_session": CASES["breeder with a session inside"],
    "optical_assisted": CASES["optical assisted"],
}


def transcript(case: Case) -> dict[str, Any]:
    """A session's journal and evaluation; what names the machine is left out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "session"
        case.run(folder)
        documents = [(path, decode(path.read_bytes())) for path in record_paths(folder)]
        evaluator = decode((folder / "evaluator.json").read_bytes())
    return {
        "records": {path.name: _machine_free(document) for path, document in documents},
        "evaluator": _machine_free(evaluator),
    }


# The runtime and the source are in study.json, hence in every digest after it.
DIGESTS = {
    "previous_sha256",
    "previous_record_sha256",
    "head_sha256",
    "manifest_sha256",
    "witness",
    "display_runtime",
    "spec_sha256",
}


def _machine_free(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _machine_free(v) for k, v in value.items() if k not in DIGESTS}
    if isinstance(value, list):
        return [_machine_free(item) for item in value]
    return value


def main() -> None:
    """Write one file a session."""
    parser = argparse.ArgumentParser(description="Regenerate the golden transcripts.")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "tests" / "vectors")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for name, case in GOLDEN.items():
        (given.output / f"{name}.json").write_bytes(encode(transcript(case)))


if __name__ == "__main__":
    main()
