"""`probebench doctor` as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from probebench.app.doctor import FOLDER_CHECKS, MACHINE_CHECKS
from tests.process.drivers import run, run_forked

NEEDED = {check.name for check in (*FOLDER_CHECKS, *MACHINE_CHECKS) if check.needed}


def test_a_machine_that_runs_these_tests_is_fit_for_sessions(tmp_path: Path) -> None:
    ran = run("doctor", "--folder", tmp_path, "--json")
    found = json.loads(ran.stdout)
    results = {row["check"]: row["result"] for row in found["checks"]}
    assert {name for name in NEEDED if results[name] == "failed"} == set()
    assert (ran.returncode, found["healthy"]) == (0, True)
    assert ran.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_a_sandbox_that_passes_its_test_of_itself_is_found(tmp_path: Path) -> None:
    if subprocess.run(
        ["sh", "-c", "bwrap --unshare-all --ro-bind / / true"], check=False, capture_output=True
    ).returncode:
        pytest.skip("bwrap (Debian's package bubblewrap) is not installed, or not allowed here")
    rows = json.loads(run_forked("doctor", "--folder", tmp_path, "--json").stdout)["checks"]
    (row,) = [row for row in rows if row["check"] == "sandbox"]
    assert row["result"] == "ok", row["seen"]


def test_without_bwrap_sessions_run_and_a_note_names_it(tmp_path: Path) -> None:
    ran = run("doctor", "--folder", tmp_path, "--json", env={**os.environ, "PATH": str(tmp_path)})
    rows = json.loads(ran.stdout)["checks"]
    (row,) = [row for row in rows if row["check"] == "sandbox"]
    assert (ran.returncode, row["result"]) == (0, "note")
    assert "bwrap" in row["seen"]


def test_a_pipe_gets_plain_lines(tmp_path: Path) -> None:
    ran = run_forked("doctor", "--folder", tmp_path)
    assert ran.returncode == 0
    lines = ran.stdout.decode().splitlines()
    assert b"\x1b" not in ran.stdout
    assert lines[-1] == f"fit for sessions ({tmp_path})"
    words = {line.split()[0] for line in lines[:-1]}
    assert words <= {"ok", "note"}


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_a_folder_that_nobody_can_write_in_is_a_failure_without_a_traceback(folder: str) -> None:
    if not Path(folder).is_dir():
        pytest.skip(f"there is no {folder} on this system")
    ran = run_forked("doctor", "--folder", folder)
    assert ran.returncode == 5
    assert ran.stdout.startswith(b"failed  writable: cannot write here")
    assert b"Traceback" not in ran.stdout + ran.stderr


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    ran = run_forked("doctor", "--folder", tmp_path / "nowhere")
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1


SMALL = """
mount -t tmpfs -o size=1m,mode=700 none "$1" || exit 90
exec "$2" -m probebench doctor --folder "$1" --json
"""


def test_a_small_tmpfs_is_too_small_and_a_caution(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounts are not allowed here; the probe is tested with answers of its own")
    given = ["sh", str(tmp_path), sys.executable]
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", SMALL, *given], check=False, capture_output=True
    )
    assert ran.returncode == 5, ran.stderr
    rows = {row["check"]: row for row in json.loads(ran.stdout)["checks"]}
    assert rows["free space"]["result"] == "failed"
    assert rows["file system"]["result"] == "note"
    assert "power loss" in rows["file system"]["seen"]
    assert rows["hard links"]["result"] == "ok"


VOLATILE = """
mount -t tmpfs none "$1" && cd "$1" && mkdir lower upper work seen || exit 90
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,volatile none seen || exit 90
exec "$2" -m probebench doctor --folder seen --json
"""


def test_an_overlay_whose_fsync_does_nothing_is_named(tmp_path: Path) -> None:
    given = ["sh", str(tmp_path), sys.executable]
    ran = subprocess.run(
        ["sh", "-c", 'exec unshare -m sh -c "$@"', "sh", VOLATILE, *given],
        check=False,
        capture_output=True,
    )
    if ran.returncode not in (0, 5):
        pytest.skip("overlays cannot be mounted here; the option is tested as text")
    rows = {row["check"]: row for row in json.loads(ran.stdout)["checks"]}
    assert rows["file system"]["result"] == "note"
    assert "volatile" in rows["file system"]["seen"]
    assert rows["fsync of a file"]["result"] == "ok"  # it returns, and no probe sees more
