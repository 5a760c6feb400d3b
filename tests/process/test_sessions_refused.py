"""Folders that another driver holds, that have another origin, or that are complete."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.drivers import (
    DEVELOPMENT,
    DIRECT,
    SCRIPTED,
    ZERO,
    driver,
    run_forked,
    unfinished,
    write_config,
)
from tests.rigs import folder_bytes


def test_a_second_driver_is_refused_at_once(tmp_path: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        request = speaker.receive()
        for words in (
            ("session", "--config", DIRECT, "--output", tmp_path / "a"),
            ("session", "--config", DIRECT, "--output", tmp_path / "a", "--resume"),
            ("resume", tmp_path / "a"),
            ("verify", tmp_path / "a"),
        ):
            second = run_forked(*words)
            assert second.returncode == 6, second.stderr
            assert b"Traceback" not in second.stderr
        speaker.act(request, "submit", ZERO)
        assert speaker.receive()["kind"] == "final"
        assert speaker.finish()[0] == 0
    assert run_forked("verify", tmp_path / "a").returncode == 0


def test_another_configuration_is_refused_naming_the_fields(tmp_path: Path) -> None:
    first = write_config(tmp_path / "first.json")
    unfinished(tmp_path / "a", first)
    other = write_config(tmp_path / "other.json", wavelength_nm=851.0, budget__exposures=7)
    words = (
        "session",
        "--config",
        other,
        "--output",
        tmp_path / "a",
        "--resume",
        "--agent",
        SCRIPTED,
    )
    refused = run_forked(*words)
    assert refused.returncode == 4
    assert b"budget.exposures, wavelength_nm" in refused.stderr
    assert b"851" not in refused.stderr


def patched_driver(
    tmp_path: Path, patch: str, *words: str | Path
) -> subprocess.CompletedProcess[bytes]:
    """The driver with a line run before it starts."""
    program = f"{patch}\nfrom probebench.cli import main\nmain()\n"
    path = tmp_path / "patched.py"
    path.write_text(program)
    return subprocess.run(
        [sys.executable, path, *map(str, words)], input=b"", capture_output=True, check=False
    )


ANOTHER_NUMPY = (
    "from importlib import metadata\n"
    "genuine = metadata.version\n"
    "metadata.version = lambda name: '9.9.9' if name == 'numpy' else genuine(name)"
)
ANOTHER_SOURCE = (
    "from probebench.host import snapshot\n"
    "genuine = snapshot.capture\n"
    "def capture(root):\n"
    "    files = genuine(root)\n"
    "    files['kernel/turn.py'] += b'# changed'\n"
    "    return files\n"
    "snapshot.capture = capture"
)
ANOTHER_PILLOW = (
    "from probebench.host import runtime\n"
    "genuine = runtime.capture_display\n"
    "runtime.capture_display = lambda: {**genuine(), 'zlib': {'version': '0.1'}}"
)


@pytest.mark.parametrize(
    ("patch", "named"),
    [(ANOTHER_NUMPY, b"numpy"), (ANOTHER_SOURCE, b"kernel/turn.py"), (ANOTHER_PILLOW, b"zlib")],
    ids=["numpy", "source", "display"],
)
def test_another_machine_or_source_is_refused_naming_it(
    patch: str, named: bytes, tmp_path: Path
) -> None:
    unfinished(tmp_path / "a")
    before = folder_bytes(tmp_path / "a")
    refused = patched_driver(tmp_path, patch, "resume", tmp_path / "a", "--agent", SCRIPTED)
    assert refused.returncode == 4, refused.stderr
    assert named in refused.stderr
    assert b"Traceback" not in refused.stderr
    assert folder_bytes(tmp_path / "a") == before
    assert run_forked("resume", tmp_path / "a", "--agent", SCRIPTED).returncode == 0


def test_a_finished_session_verifies_under_another_numpy_and_says_so(
    tmp_path: Path, finished: Path
) -> None:
    verified = patched_driver(tmp_path, ANOTHER_NUMPY, "verify", finished)
    assert verified.returncode == 0, verified.stdout
    assert b"another runtime" in verified.stdout
    assert b"numpy" in verified.stdout


def test_a_completed_folder_is_never_written_again(finished: Path) -> None:
    before = folder_bytes(finished)
    stamps = {path: path.stat().st_mtime_ns for path in [finished, *finished.rglob("*")]}
    for words in (
        ("session", "--config", DIRECT, "--output", finished, "--resume", "--agent", SCRIPTED),
        ("session", "--config", DIRECT, "--output", finished, "--resume"),
        ("resume", finished, "--agent", SCRIPTED),
        ("resume", finished),
    ):
        again = run_forked(*words)
        assert again.returncode == 0
        assert b"complete already" in again.stderr
    assert run_forked("session", "--config", DIRECT, "--output", finished).returncode == 2
    assert (
        run_forked("session", "--config", DEVELOPMENT, "--output", finished, "--resume").returncode
        == 4
    )
    assert folder_bytes(finished) == before
    assert {path: path.stat().st_mtime_ns for path in [finished, *finished.rglob("*")]} == stamps


def test_an_unfinished_folder_is_said_to_be_unfinished(tmp_path: Path) -> None:
    unfinished(tmp_path / "a")
    verified = run_forked("verify", tmp_path / "a")
    assert verified.returncode == 3
    assert b"UNFINISHED" in verified.stdout
    assert b"unfinished" in run_forked("show", tmp_path / "a").stdout
