"""A disk that is full, a real one: an error, and a session that goes on once there is room."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.environments.test_conformance import CASES, REPOSITORY
from tests.faults.share import Count
from tests.rigs import folder_bytes

NAMESPACE = ["unshare", "--map-root-user", "--mount"]


def why_not() -> str:
    """Why no small disk can be mounted here, or ""."""
    script = 'mount -t tmpfs -o size=64k none "$0"'
    try:
        ran = subprocess.run(
            [*NAMESPACE, "sh", "-c", script, tempfile.gettempdir()],
            check=False,
            capture_output=True,
        )
    except FileNotFoundError:
        return "unshare is not installed (Debian package util-linux)"
    return "" if ran.returncode == 0 else "a tmpfs cannot be mounted in a namespace here"


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def on_disks(root: Path, name: str, disk: str, most: int) -> list[dict[str, Any]]:
    """What became of the session on disks of several sizes, see full_disk.py."""
    place = root / "disk"
    place.mkdir()
    module = [sys.executable, "-m", "tests.faults.full_disk", str(place), name, disk, str(most)]
    ran = subprocess.run(
        [*NAMESPACE, *module], check=False, capture_output=True, text=True, cwd=REPOSITORY
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def whole(root: Path, name: str) -> dict[str, str]:
    CASES[name].run(root / "whole")
    return {file: data.hex() for file, data in folder_bytes(root / "whole").items()}


@pytest.mark.parametrize("name", ["thermometer", "optical direct"])
def test_a_full_disk_is_an_error_and_with_room_the_session_ends_the_same(
    name: str, tmp_path: Path, count: Count
) -> None:
    expected = whole(tmp_path, name)
    results = on_disks(tmp_path, name, "genuine", 12)
    assert [fault for result in results for fault in faults_of(result, expected)] == []
    assert {result["kind"] for result in results} == {"pages", "inodes"}
    # Records of several pages are cut within.
    assert name == "thermometer" or any(result["short_writes"] for result in results)
    count("disks that ran full, each told and resumed", len(results), name)


def faults_of(result: dict[str, Any], expected: dict[str, str]) -> list[str]:
    faults = {
        "the exit code": result["code"] != 5,
        "the sentence": not result["said"].endswith(": No space left on device\n"),
        "more than a sentence": result["said"].count("\n") != 1,
        "a message without a record": result["unrecorded"] > 0,
        "another end": result["files"] != expected,
    }
    where = f"{result['limit']} {result['kind']}"
    return [f"{fault} at {where}: {result['said']!r}" for fault, found in faults.items() if found]


def test_a_disk_that_ignores_short_writes_is_caught(tmp_path: Path) -> None:
    expected = whole(tmp_path, "optical direct")
    results = on_disks(tmp_path, "optical direct", "ignores short writes", 12)
    found = [fault for result in results for fault in faults_of(result, expected)]
    assert any("another end" in fault for fault in found), found
