"""How sessions end: signals, lost streams, clients that die, stall or shout."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.process.drivers import (
    DIRECT,
    SCRIPTED,
    ZERO,
    agent,
    driver,
    evaluator,
    run,
    run_forked,
    write_config,
)

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_leaves_a_folder_that_resumes(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        speaker.receive()
        speaker.process.send_signal(number)
        assert speaker.process.wait(timeout=20) == code
    require_resumable(tmp_path / "a")


def test_a_signal_while_a_started_client_is_waited_for_leaves_a_folder_that_resumes(
    tmp_path: Path,
) -> None:
    sleeping = agent(tmp_path, "import time; time.sleep(100)")
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a", "--agent", sleeping)
    with driver(*words) as speaker:
        wait_for(tmp_path / "a" / "session.json")
        speaker.process.send_signal(signal.SIGTERM)
        assert speaker.process.wait(timeout=20) == 143
    require_resumable(tmp_path / "a")


def require_resumable(folder: Path) -> None:
    assert not (folder / "manifest.json").exists()
    assert run_forked("resume", folder, "--agent", SCRIPTED).returncode == 0
    assert run_forked("verify", folder).returncode == 0


def wait_for(path: Path, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.01)


def test_a_lost_standard_output_leaves_a_folder_that_resumes(tmp_path: Path) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        request = speaker.receive()
        assert speaker.process.stdout is not None
        speaker.process.stdout.close()
        speaker.act(request, "expose", ZERO)
        assert speaker.process.wait(timeout=20) == 5
    assert run_forked("resume", tmp_path / "a", "--agent", SCRIPTED).returncode == 0
    assert evaluator(tmp_path / "a")["resources"]["spent"]["exposures"] == 3


DYING = """
from probebench.clients import connect
agent = connect()
agent.expose([10, 20, 0, 0, 0, 0])
raise SystemExit(7)
"""


def test_the_death_of_a_client_is_a_failed_episode_at_its_last_measured_command(
    tmp_path: Path,
) -> None:
    words = (
        "session",
        "--config",
        DIRECT,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, DYING),
    )
    ran = run(*words, "--json")
    assert ran.returncode == 1
    printed = json.loads(ran.stdout)
    assert (printed["status"], printed["cause"]) == ("failed", "eof")
    judged = evaluator(tmp_path / "a")
    assert judged["outcome"] == {"status": "failed", "cause": "eof"}
    measured = judged["evaluation"]["measured_wfe_nm_rms"]
    assert judged["evaluation"]["residual_wfe_nm_rms"] == measured[-1] != measured[0]
    assert run_forked("verify", tmp_path / "a").returncode == 0


def test_a_client_that_cannot_be_found_is_the_operators_mistake(tmp_path: Path) -> None:
    ran = run(
        "session", "--config", DIRECT, "--output", tmp_path / "a", "--agent", "no-such-program-here"
    )
    assert ran.returncode == 2
    assert b"no-such-program-here" in ran.stderr
    assert not (tmp_path / "a").exists()


# -- clients that stall ---------------------------------------------------------------------

DRIPPING = """
import os, time
os.read(0, 1)
while True:
    os.write(1, b" ")
    time.sleep(0.05)
"""
STUFFED = """
import json, os, sys
def line():
    data = b""
    while not data.endswith(b"\\n"):
        data += os.read(0, 65536)
    return json.loads(data)
# 70,000 bytes of rejected lines before anything is read; each costs a request.
os.write(1, (b"x" * 9999 + b"\\n") * 7)
message = line()
while message["kind"] != "final":
    if message["resources"]["spent"]["requests"] < 7:
        message = line()
        continue
    action = {"protocol": message["protocol"], "request_id": message["request_id"],
              "action": "submit", "command_opd_nm": [0] * 6}
    os.write(1, json.dumps(action).encode() + b"\\n")
    message = line()
"""
LOUD = """
import sys
from probebench.clients import connect
from probebench.clients.scripted import play
for _ in range(10_000):
    sys.stderr.write("x" * 999 + "\\n")
agent = connect()
sys.stderr.write("y" * 1_000_000)
play(agent)
sys.stderr.write("z" * 1_000_000)
"""


def test_a_dripping_client_times_out_at_its_deadline_and_not_later(tmp_path: Path) -> None:
    config = write_config(tmp_path / "config.json", input_deadline_s=1.0)
    words = (
        "session",
        "--config",
        config,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, DRIPPING),
    )
    assert run(*words).returncode == 1
    fault = json.loads((tmp_path / "a/turns/turn_0001_fault.json").read_bytes())
    assert fault["fault"]["kind"] == "timeout"
    assert fault["timing"]["deadline_s"] == 1.0
    # A timer that each byte winds up again would never run out on this client.
    assert fault["timing"]["input_wait_s"] >= 1.0


def test_a_client_that_writes_70000_bytes_before_it_reads_200000_does_not_deadlock(
    tmp_path: Path,
) -> None:
    config = write_config(tmp_path / "config.json", detector__pixels=112)
    words = (
        "session",
        "--config",
        config,
        "--output",
        tmp_path / "a",
        "--agent",
        agent(tmp_path, STUFFED),
    )
    ran = run(*words)
    assert ran.returncode == 0, ran.stderr
    message = json.loads((tmp_path / "a/session.json").read_bytes())["message"]
    assert len(json.dumps(message)) > 200_000
    assert evaluator(tmp_path / "a")["resources"]["spent"]["requests"] == 8


def test_a_client_that_writes_ten_megabytes_of_errors_does_not_stall(tmp_path: Path) -> None:
    for number, extra in enumerate(((), ("--agent-stderr", tmp_path / "errors.txt"))):
        words = ("session", "--config", DIRECT, "--output", tmp_path / str(number))
        assert run(*words, "--agent", agent(tmp_path, LOUD), *extra).returncode == 0
    assert (tmp_path / "errors.txt").stat().st_size > 10_000_000
