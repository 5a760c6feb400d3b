"""SIGKILL of the driver that a user started, while its client is at work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.journals import masked
from tests.process.drivers import DEVELOPMENT, SCRIPTED, agent, driver, evaluator, run, run_forked

# Plays as the scripted client does, and kills the driver over one message:
# before it answers, or as soon as it has.
KILLING = """
import os, signal
from probebench.clients import connect, scripted
from probebench.clients.connection import Connection

def kill():
    os.kill(os.getppid(), signal.SIGKILL)
    raise SystemExit

answered = 0
genuine = Connection.send
def send(self, action):
    global answered
    answered += 1
    if (answered, "{moment}") == ({fatal}, "before"):
        kill()
    genuine(self, action)
    if answered == {fatal}:
        kill()
Connection.send = send
scripted.play(connect())
"""


@pytest.mark.parametrize(
    ("fatal", "moment"), [(1, "after"), (2, "before"), (3, "before"), (3, "after")]
)
def test_a_driver_killed_over_any_message_resumes_to_the_same_journal(
    fatal: int, moment: str, assisted: Path, tmp_path: Path
) -> None:
    killing = agent(tmp_path, KILLING.format(fatal=fatal, moment=moment))
    given = ("session", "--config", DEVELOPMENT, "--output", tmp_path / "a")
    assert run(*given, "--agent", killing).returncode == -9
    assert not (tmp_path / "a/manifest.json").exists()
    assert run_forked(*given, "--resume", "--agent", SCRIPTED).returncode == 0
    assert masked(tmp_path / "a") == masked(assisted)
    judged, whole = evaluator(tmp_path / "a"), evaluator(assisted)
    assert judged["resources"] == whole["resources"]
    assert judged["evaluation"] == whole["evaluation"]


def test_a_request_that_is_sent_again_has_the_same_bytes(tmp_path: Path) -> None:
    given = ("session", "--config", DEVELOPMENT, "--output", tmp_path / "a")
    with driver(*given) as speaker:
        first = speaker.receive()
        speaker.act(first, "expose", [80, 0, 0, 0, 0, 0])
        request = speaker.receive_line()
        speaker.process.kill()
    with driver(*given, "--resume") as speaker:
        assert speaker.receive_line() == request
        # What was answered before is stale, and acquires nothing.
        speaker.act(first, "expose", [80, 0, 0, 0, 0, 0])
        again = speaker.receive()
    assert again["last_result"]["code"] == "stale_request_id"
    assert again["request_id"] == json.loads(request)["request_id"]
    assert again["resources"]["spent"]["exposures"] == 2
