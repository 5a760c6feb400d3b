"""One loop: session, resume and verify are the same call with other sources."""

from __future__ import annotations

from typing import Any

import pytest

from probebench.app.drive import Driven, End, TurnSeen, drive
from probebench.app.journal import Journal, ReadOnlyRecords
from probebench.kernel import turn as records
from probebench.kernel.budget import Charge
from probebench.kernel.episode import Ask, Episode, Fault, FaultKind, Task
from probebench.kernel.errors import UnfinishedError
from probebench.kernel.study import Study
from tests.environments.test_conformance import CASES
from tests.rigs import NONCE, ConstantClock

CASE = CASES["thermometer"]
ROOT = "0" * 64
TIMING = {"input_wait_s": 0.0, "deadline_s": 20.0}


class Memory:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def publish(self, name: str, data: bytes) -> None:
        assert name not in self.files
        self.files[name] = data


class Source:
    """Answers by the case's client; counts what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Ask, bool]] = []
        self.computed: list[Task] = []

    def answer(self, ask: Ask, message: bytes, *, sent_before: bool) -> tuple[records.Answer, Any]:
        self.asked.append((ask, sent_before))
        return records.Answer(CASE.reply(ask, dict(ask.body))), TIMING

    def value(self, task: Task) -> Any:
        self.computed.append(task)
        return CASE.environment().run(task)


class Watch:
    def __init__(self) -> None:
        self.seen: list[TurnSeen] = []

    def opened(self, charge: Charge) -> None:
        self.opening = charge

    def turn(self, seen: TurnSeen) -> None:
        self.seen.append(seen)


def episode() -> Episode:
    return CASE.environment().open(Study(CASE.config, {}, {}), NONCE)


def run(kept: Any, source: Any, watch: Watch | None = None) -> Driven:
    opened = episode()
    journal = Journal(kept, ROOT)
    document = records.session_document(NONCE, {}, {}, opened.pending(), ROOT)
    journal.settle(records.SESSION, document, None)
    return drive(opened, source, journal, ConstantClock(), Watch() if watch is None else watch)


def test_every_record_prefix_resumes_to_the_same_files_and_asks_only_for_the_rest() -> None:
    whole, full = Memory(), Source()
    expected = run(whole, full)
    names = list(whole.files)
    for cut in range(1, len(names) + 1):
        kept, source = Memory(), Source()
        kept.files = {name: whole.files[name] for name in names[:cut]}
        assert run(kept, source) == expected
        assert kept.files == whole.files
        answered = sum(name.endswith("_input.json") for name in names[:cut])
        assert [ask for ask, _ in source.asked] == [ask for ask, _ in full.asked][answered:]
        published = sum(b'"value":{' in whole.files[name] for name in names[:cut])
        assert len(source.computed) == len(full.computed) - published


def test_a_message_from_a_saved_record_counts_as_sent_before() -> None:
    whole = Memory()
    run(whole, Source())
    kept, source = Memory(), Source()
    kept.files = dict(list(whole.files.items())[:5])
    run(kept, source)
    assert [sent for _, sent in source.asked] == [True] + [False] * (len(source.asked) - 1)


def test_verification_is_the_same_call_with_the_end_for_a_source() -> None:
    whole = Memory()
    expected = run(whole, Source())
    watch = Watch()
    assert run(ReadOnlyRecords(whole.read), End(), watch) == expected
    assert all(seen.replayed for seen in watch.seen)
    del whole.files[next(reversed(whole.files))]
    with pytest.raises(UnfinishedError):
        run(ReadOnlyRecords(whole.read), End())


def test_charges_of_the_turns_add_up_to_what_was_spent() -> None:
    watch = Watch()
    driven = run(Memory(), Source(), watch)
    total: dict[str, int] = {}
    for seen in watch.seen:
        for name, amount in seen.charge.items():
            total[name] = total.get(name, 0) + amount
    assert total == driven.spent
    assert driven.turns == len(watch.seen)


def test_a_fault_is_recorded_in_place_of_an_input_and_ends_the_toy() -> None:
    class Silent(Source):
        def answer(
            self, ask: Ask, message: bytes, *, sent_before: bool
        ) -> tuple[records.Answer, Any]:
            return records.Answer(b"half a li", Fault(FaultKind.TIMEOUT)), TIMING

    kept = Memory()
    driven = run(kept, Silent())
    assert (driven.final.submitted, driven.final.cause) == (False, "timeout")
    assert list(kept.files) == [
        "session.json",
        "turns/turn_0001_fault.json",
        "turns/turn_0001_response.json",
    ]
