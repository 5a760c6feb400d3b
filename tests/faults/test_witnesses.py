"""What no check of a folder by itself can find, each witness kept outside finds.

A forger here has the folder, its nonce and its configuration, and a driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from probebench.app.entry import Entry
from probebench.app.session import run_session
from probebench.app.sign import sign_folder
from probebench.app.signature import SIGNATURE
from probebench.app.transcript import read_transcript
from probebench.app.verify import Verdict, verify_folder
from probebench.host import keys
from probebench.host.filesystem import Filesystem
from probebench.kernel.canonical import decode, encode
from probebench.kernel.episode import Ask, Task
from probebench.kernel.errors import ArtifactError, OperatorError
from tests.environments.test_conformance import CASES
from tests.faults.finished import edited, rechained, resealed, set_field
from tests.journals import record_paths
from tests.rigs import RepliesInProcess, constant_rig, folder_bytes
from tests.toys.thermometer import Thermometer

TOY = CASES["thermometer"]


@dataclass(frozen=True)
class Kept:
    """What was kept outside, when the session ended."""

    head: str
    public_key: bytes
    transcript: list[str]

    def verdicts(self, folder: Path) -> dict[str, Verdict]:
        rig = constant_rig()
        return {
            "nothing": verify_folder(rig, folder),
            "head": verify_folder(rig, folder, expect_head=self.head),
            "key": verify_folder(rig, folder, public_key=self.public_key),
            "transcript": verify_folder(rig, folder, transcript=self.transcript),
        }

    def found_by(self, folder: Path) -> set[str]:
        return {name for name, verdict in self.verdicts(folder).items() if not verdict.verified}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "session"


@pytest.fixture
def kept(folder: Path, tmp_path: Path) -> Kept:
    """A session is played, signed and witnessed."""
    clients = RepliesInProcess(TOY.reply)
    outcome = run_session(constant_rig(), folder, TOY.config, clients)
    (tmp_path / "transcript.jsonl").write_bytes(b"".join(clients.messages))
    public_key = keys.make_key(tmp_path / "key", Filesystem())
    sign_folder(constant_rig(), folder, keys.read_signing_key(tmp_path / "key"))
    transcript = read_transcript(tmp_path / "transcript.jsonl")
    return Kept(outcome.head_sha256, public_key, transcript)


def better(ask: Ask, message: dict[str, Any]) -> bytes:
    """The same play to another answer."""
    line = TOY.reply(ask, message)
    return encode({**json.loads(line), "value": 41.0}) if b"answer" in line else line


def without_end(folder: Path, turns: int) -> None:
    """Drop the end of a session, and its last turns."""
    for name in (SIGNATURE, "manifest.json", "evaluator.json"):
        (folder / name).unlink()
    last = max(int(path.name[5:9]) for path in (folder / "turns").iterdir())
    for turn in range(last - turns + 1, last + 1):
        for path in (folder / "turns").glob(f"turn_{turn:04d}_*"):
            path.unlink()


def test_the_untouched_session_passes_every_witness(folder: Path, kept: Kept) -> None:
    verdicts = kept.verdicts(folder)
    assert [str(v.failure) for v in verdicts.values() if not v.verified] == []
    seen = dict(verdicts["transcript"].checks)["transcript"]
    assert seen.startswith(f"{len(kept.transcript)} of {len(kept.transcript)} messages")


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_last_turns_played_again_to_a_better_end_are_found_by_every_witness(
    turns: int, folder: Path, kept: Kept
) -> None:
    before = folder_bytes(folder)
    without_end(folder, turns)
    replace(TOY, reply=better).run(folder, resume=True)
    assert folder_bytes(folder)["evaluator.json"] != before["evaluator.json"]
    assert kept.found_by(folder) == {"head", "key", "transcript"}
    (folder / SIGNATURE).write_bytes(before[SIGNATURE])
    verdict = verify_folder(constant_rig(), folder)
    assert verdict.failure is not None
    assert verdict.failure.artifact == SIGNATURE


def test_a_changed_last_duration_is_found_by_the_head_and_the_signature(
    folder: Path, kept: Kept
) -> None:
    """No message carries the digest of the last record, so that no transcript shows it."""
    (folder / SIGNATURE).unlink()
    last = str(record_paths(folder)[-1].relative_to(folder))
    edited(folder, last, set_field("timing", "driver_s", value=9.0))
    rechained(folder)
    resealed(folder)
    assert kept.found_by(folder) == {"head", "key"}


def test_a_changed_duration_of_an_answer_is_found_by_every_witness(
    folder: Path, kept: Kept
) -> None:
    """A forger must change the witness in every later message as well."""
    (folder / SIGNATURE).unlink()
    paths = record_paths(folder)
    edited(folder, "turns/turn_0001_input.json", set_field("timing", "input_wait_s", value=9.0))
    for earlier, later in pairwise(paths):
        # The witness of a message is the digest of the record before its own.
        rechained(folder)
        name = str(later.relative_to(folder))
        if (message := decode(later.read_bytes()).get("message")) is not None:
            witness = sha256(earlier.read_bytes()).hexdigest()
            edited(folder, name, set_field("message", value={**message, "witness": witness}))
    rechained(folder)
    resealed(folder)
    assert kept.found_by(folder) == {"head", "key", "transcript"}


def test_another_session_of_the_same_play_is_found_by_every_witness(
    folder: Path, kept: Kept, tmp_path: Path
) -> None:
    rig = replace(constant_rig(), entropy=lambda count: b"\7" * count)
    TOY.run(tmp_path / "other", rig)
    assert kept.found_by(tmp_path / "other") == {"head", "key", "transcript"}


@pytest.mark.parametrize(
    ("name", "witness"), [("thermometer", "witness"), ("optical direct", "previous_record_sha256")]
)
def test_every_message_carries_the_digest_of_the_record_before_its_own(
    name: str, witness: str, folder: Path
) -> None:
    CASES[name].run(folder)
    paths = record_paths(folder)
    sent = 0
    for before, record in pairwise(paths):
        message = decode(record.read_bytes()).get("message")
        if message is not None:
            assert message[witness] == sha256(before.read_bytes()).hexdigest(), record.name
            sent += 1
    assert sent == len([path for path in paths if "response" in path.name]) > 2


# -- computations --------------------------------------------------------------------------


class Flattering(Thermometer):
    """An instrument whose computation was altered in memory."""

    def run(self, task: Task) -> float:
        return 99.0


def test_an_altered_computation_passes_unless_it_is_run_again(folder: Path) -> None:
    altered = constant_rig(entries={"thermometer": Entry(Flattering())})
    TOY.run(folder, altered)
    assert verify_folder(constant_rig(), folder).verified
    failure = verify_folder(constant_rig(), folder, refit=True).failure
    assert failure is not None
    assert failure.artifact == "turns/turn_0005_response.json"
    assert "run again gives another value" in str(failure)


# -- transcripts ---------------------------------------------------------------------------


def written(path: Path, lines: list[bytes]) -> list[str]:
    path.write_bytes(b"".join(lines))
    return read_transcript(path)


@pytest.fixture
def lines(kept: Kept, tmp_path: Path) -> list[bytes]:
    return (tmp_path / "transcript.jsonl").read_bytes().splitlines(keepends=True)


def failure_of(folder: Path, transcript: list[str]) -> ArtifactError | None:
    return verify_folder(constant_rig(), folder, transcript=transcript).failure


Shape = Callable[[list[bytes]], list[bytes]]
LAWFUL: dict[str, Shape] = {
    "without the farewell": lambda lines: lines[:-1],
    "the first alone": lambda lines: lines[:1],
    "without the first": lambda lines: lines[1:],
    "sent again": lambda lines: [lines[0], lines[0], *lines[1:]],
    "every second": lambda lines: lines[::2],
    "with other spaces": lambda lines: [
        json.dumps(json.loads(line), sort_keys=False, separators=(" ,", " : ")).encode() + b"\r\n"
        for line in lines
    ],
    "without the last newline": lambda lines: [*lines[:-1], lines[-1].rstrip()],
}


@pytest.mark.parametrize("shape", LAWFUL)
def test_a_transcript_that_an_honest_client_may_have_passes(
    shape: str, lines: list[bytes], folder: Path, tmp_path: Path
) -> None:
    assert failure_of(folder, written(tmp_path / "t", LAWFUL[shape](lines))) is None


def test_messages_in_another_order_are_refused(
    lines: list[bytes], folder: Path, tmp_path: Path
) -> None:
    failure = failure_of(folder, written(tmp_path / "t", [lines[1], lines[0]]))
    assert "line 2 of the transcript was sent before" in str(failure)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_changed_message_is_refused_and_its_record_named(
    number: int, lines: list[bytes], folder: Path, tmp_path: Path
) -> None:
    message = json.loads(lines[number - 1])
    lines[number - 1] = encode({**message, "step": 77})
    failure = failure_of(folder, written(tmp_path / "t", lines))
    assert failure is not None
    records = ["session.json", *(f"turns/turn_{turn:04d}_response.json" for turn in (1, 2))]
    assert failure.artifact == records[number - 1]
    assert f"line {number} of the transcript is no message of this session" in str(failure)


def test_a_message_beyond_the_end_is_refused(
    lines: list[bytes], folder: Path, tmp_path: Path
) -> None:
    failure = failure_of(folder, written(tmp_path / "t", [*lines, b"{}\n"]))
    assert f"line {len(lines) + 1} of" in str(failure)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "holds no message"),
        (b"{\n", "line 1 of the transcript is no message"),
        (b'{}\n{"a": 1, "a": 2}\n', "line 2"),
        (b"\xff\n", "line 1"),
        (b"18446744073709551616\n", "line 1"),
        (b'"\\ud800"\n', "line 1"),
    ],
)
def test_a_file_that_is_no_transcript_is_the_operators_mistake(
    data: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(OperatorError, match=words):
        read_transcript(tmp_path / "t")


def test_a_transcript_that_is_not_there_is_the_operators_mistake(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="No such file"):
        read_transcript(tmp_path / "t")
