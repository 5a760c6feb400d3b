"""The journal reads what is saved, publishes what is not, and notices the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probebench.app.journal import Journal, ReadOnlyRecords
from probebench.kernel import turn as records
from probebench.kernel.canonical import decode, encode
from probebench.kernel.environment import Part
from probebench.kernel.episode import Ask, Fault, FaultKind, Launch, Task
from probebench.kernel.errors import ArtifactError, UnfinishedError

ROOT = "0" * 64
WAITED = {"input_wait_s": 1.0, "deadline_s": 5.0}
DRIVEN = {"driver_s": 2.0, "task_s": 0.0}
ASK = Ask("ask-1", "agent", Launch.SHARED, {"kind": "request"}, 5.0)
TASK = Task("task-1", "kind", {"x": 1})


class Memory:
    """Records in memory."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = {} if files is None else files

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def publish(self, name: str, data: bytes) -> None:
        assert name not in self.files
        self.files[name] = data


def response(turn: int, message: Any, value: records.SavedValue | None = None) -> dict[str, Any]:
    document = records.response_document(turn, value, None, {}, TASK, "d")
    return {**document, "message": message}


def written() -> dict[str, bytes]:
    memory = Memory()
    journal = Journal(memory, ROOT)
    journal.keep_answer(1, ASK, records.Answer(b"line\n"), WAITED)
    saved = records.SavedValue.of(TASK, 42)
    journal.settle(records.response_name(1), response(1, {"a": 1}, saved), DRIVEN)
    return memory.files


def test_what_was_published_is_handed_out_again_with_the_same_head() -> None:
    files = written()
    journal = Journal(Memory(dict(files)), ROOT)
    assert journal.answer(1, ASK) == records.Answer(b"line\n")
    saved = journal.value(1, TASK)
    assert saved is not None
    assert saved.value == 42
    journal.settle(
        records.response_name(1), response(1, {"a": 1}, saved), {"driver_s": 99.0, "task_s": 0.0}
    )
    assert journal.message == b'{"a":1}\n'
    assert journal.message_was_saved
    assert journal.names == list(files)


def test_beyond_the_end_there_is_nothing() -> None:
    journal = Journal(Memory(), ROOT)
    assert journal.answer(1, ASK) is None
    assert journal.value(1, TASK) is None
    with pytest.raises(UnfinishedError):
        Journal(ReadOnlyRecords(lambda name: None), ROOT).settle(
            "turns/turn_0001_response.json", response(1, {}), {}
        )


def test_a_replay_that_differs_names_the_record_and_the_field() -> None:
    journal = Journal(Memory(written()), ROOT)
    journal.answer(1, ASK)
    with pytest.raises(ArtifactError, match=r"turn_0001_response\.json.*message, value"):
        journal.settle(records.response_name(1), response(1, {"a": 2}), {})


@pytest.mark.parametrize("agrees", [True, False])
def test_another_runtime_may_differ_as_far_as_the_environment_agrees(*, agrees: bool) -> None:
    asked: list[Part] = []

    def agree(part: Part, old: Any, new: Any) -> bool:
        asked.append(part)
        return agrees

    journal = Journal(Memory(written()), ROOT, agree)
    journal.answer(1, ASK)
    document = response(1, {"a": 1.0000001}, records.SavedValue.of(TASK, 42))
    if agrees:
        journal.settle(records.response_name(1), document, {})
        assert journal.message == b'{"a":1}\n'
    else:
        with pytest.raises(ArtifactError):
            journal.settle(records.response_name(1), document, {})
    assert asked == [Part.MESSAGE]


def test_an_answer_of_another_ask_is_refused() -> None:
    other = Ask("ask-2", "agent", Launch.SHARED, {}, 5.0)
    with pytest.raises(ArtifactError, match="ask-2"):
        Journal(Memory(written()), ROOT).answer(1, other)


def test_a_turn_with_both_an_input_and_a_fault_is_refused() -> None:
    files = written()
    extra = Memory()
    Journal(extra, ROOT).keep_answer(1, ASK, records.Answer(b"", Fault(FaultKind.EOF)), WAITED)
    with pytest.raises(ArtifactError, match="fault"):
        Journal(Memory(files | extra.files), ROOT).answer(1, ASK)


def test_a_value_of_another_computation_is_refused() -> None:
    journal = Journal(Memory(written()), ROOT)
    with pytest.raises(ArtifactError, match="task-1"):
        journal.value(1, Task("task-1", "kind", {"x": 2}))


def test_a_record_whose_link_is_another_is_refused() -> None:
    files = written()
    name = records.input_name(1)
    files[name] = encode({**decode(files[name]), "previous_sha256": "1" * 64})
    with pytest.raises(ArtifactError, match="previous_sha256"):
        Journal(Memory(files), ROOT).answer(1, ASK)


def test_a_record_is_published_before_its_bytes_are_handed_on(tmp_path: Path) -> None:
    class Failing(Memory):
        def publish(self, name: str, data: bytes) -> None:
            raise OSError(28, "no space left")

    journal = Journal(Failing(), ROOT)
    with pytest.raises(OSError, match="no space"):
        journal.settle(records.response_name(1), response(1, {"a": 1}), {})
    assert journal.message == b""
