"""Whole sessions through the commands that users type."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.journals import masked
from tests.process.drivers import (
    DEVELOPMENT,
    DIRECT,
    REPOSITORY,
    ZERO,
    agent,
    driver,
    environment,
    play,
    run,
    run_forked,
    scripted,
)


def test_a_started_client_and_our_own_streams_give_the_same_journal(
    assisted: Path, tmp_path: Path
) -> None:
    with driver("session", "--config", DEVELOPMENT, "--output", tmp_path / "b") as speaker:
        # Not byte for byte what the client library would write, but its actions.
        final = play(speaker, scripted)
        assert speaker.finish()[0] == 0
    assert final["outcome"] == {"status": "submitted", "cause": "submitted"}
    assert [*map(parsed, masked(tmp_path / "b"))] == [*map(parsed, masked(assisted))]


def parsed(record: bytes) -> Any:
    document = json.loads(record)
    document.pop("previous_sha256")
    if document.get("message"):
        document["message"].pop("previous_record_sha256")
    return document


def test_journals_of_other_actions_differ_after_masking(tmp_path: Path, finished: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "b") as speaker:
        play(speaker, lambda request: ("submit", ZERO))
        assert speaker.finish()[0] == 0
    assert masked(tmp_path / "b") != masked(finished)


def test_the_module_and_the_script_work_as_the_protocol_page_writes_them(
    assisted: Path, tmp_path: Path
) -> None:
    script = [sys.executable, "scripts/run_agent_protocol_control.py"]
    output = tmp_path / "control"
    given = ["--config", "configs/agent_protocol_development.json", "--output", str(output)]
    ran = subprocess.run([*script, *given], cwd=REPOSITORY, check=False, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    again = subprocess.run(
        [*script, *given, "--resume"], cwd=REPOSITORY, check=False, capture_output=True
    )
    assert again.returncode == 0
    assert b"complete already" in again.stderr
    module = [sys.executable, "-m", "probebench.agent_session", "--verify", str(output)]
    verified = subprocess.run(module, check=False, capture_output=True)
    assert verified.returncode == 0
    assert b"verified" in verified.stdout
    # The script's client is the library's too, over the driver's own streams.
    assert masked(output) == masked(assisted)


NOISY = """
import os, sys
from probebench.app import machine
from probebench.environments.optical import fixture
genuine = fixture.draw_frame
def noisy(*given):
    print("a stray line")
    sys.stdout.flush()
    os.write(1, b"beneath Python\\n")
    return genuine(*given)
fixture.draw_frame = noisy
"""
CARELESS = "machine.claim_standard_streams = lambda: (os.dup(0), os.dup(1))\n"
RUN = "from probebench.cli import main\nmain()\n"


def noisy_session(tmp_path: Path, patches: str) -> subprocess.CompletedProcess[bytes]:
    path = tmp_path / "noisy.py"
    path.write_text(patches + RUN)
    words = ["session", "--config", str(DIRECT), "--output", str(tmp_path / "a")]
    command = [sys.executable, str(path), *words]
    return subprocess.run(command, input=b"not an action\n", capture_output=True, check=False)


def test_nothing_but_the_protocol_reaches_standard_output(tmp_path: Path) -> None:
    """Whatever prints within the driver, by Python or beneath it, goes elsewhere."""
    ran = noisy_session(tmp_path, NOISY)
    kinds = [json.loads(line)["kind"] for line in ran.stdout.splitlines()]
    assert kinds == ["request", "request", "final"]
    assert b"a stray line" in ran.stderr
    assert b"beneath Python" in ran.stderr


def test_a_driver_that_shares_its_standard_output_is_caught(tmp_path: Path) -> None:
    ran = noisy_session(tmp_path, NOISY + CARELESS)
    assert b"a stray line" in ran.stdout
    assert b"beneath Python" in ran.stdout


def test_fresh_configurations_differ_and_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        made = run_forked(
            "config", "new", "--track", "direct_action", "--output", tmp_path / f"{name}.json"
        )
        assert made.returncode == 0
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in "ab")
    assert first["fixture"]["wavefront_seed"] != second["fixture"]["wavefront_seed"]
    assert first["fixture"]["detector_seed"] != second["fixture"]["detector_seed"]
    assert run_forked("config", "new", "--output", tmp_path / "a.json").returncode == 2
    assert (
        run_forked(
            "control", "--config", tmp_path / "a.json", "--output", tmp_path / "c"
        ).returncode
        == 0
    )
    assert json.loads(run_forked("config", "new").stdout)["track"] == "tool_assisted"
    assert run_forked("config", "new", "--track", "sideways").returncode == 2


def test_json_is_one_document_for_every_command(tmp_path: Path, finished: Path) -> None:
    control = ("control", "--config", DIRECT, "--output", tmp_path / "c", "--json")
    printed = json.loads(run_forked(*control).stdout)
    assert printed["verification"]["verified"] is True
    assert json.loads(run_forked("verify", finished, "--json").stdout)["verified"] is True
    assert json.loads(run_forked("show", finished, "--json").stdout)["rows"]
    refused = run_forked("verify", tmp_path / "nothing", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["exit_code"] == 2
    assert (
        run_forked("session", "--config", DIRECT, "--output", tmp_path / "d", "--json").returncode
        == 2
    )


def test_the_client_sees_neither_our_environment_nor_our_folder(tmp_path: Path) -> None:
    program = (
        "import json, os, sys\n"
        "sys.stderr.write(json.dumps([dict(os.environ), os.getcwd(), sorted(os.listdir('/proc/self/fd'))]))\n"
    )
    words = (
        "session",
        "--config",
        DIRECT,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, program),
    )
    extra = ("--agent-stderr", tmp_path / "seen.json", "--agent-env", "WANTED")
    ran = run(*words, *extra, env=environment(SECRET_KEY="hidden", WANTED="given"))
    assert ran.returncode == 1
    seen, folder, descriptors = json.loads((tmp_path / "seen.json").read_text())
    assert "SECRET_KEY" not in seen
    assert seen["WANTED"] == "given"
    assert Path(folder) != Path.cwd()
    assert not Path(folder).exists()
    assert descriptors == ["0", "1", "2", "3"]  # 3 lists the folder
