"""SIGKILL before any durable step, then resume: the session ends as it would have."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from probebench.app import journal
from probebench.app.journal import Journal
from probebench.app.registry import default_registry
from probebench.app.verify import verify_folder
from probebench.kernel.canonical import encode
from tests.conformance import Case, supersedes
from tests.environments.test_conformance import CASES
from tests.faults.forked import computed, run_forked, transcript_of, was_killed
from tests.faults.share import Count, share
from tests.journals import record_paths
from tests.rigs import Steps, constant_rig, folder_bytes

# Every random sequence kills until the session gets through.
SEQUENCES = int(os.environ.get("PROBEBENCH_KILLS", "50"))


def whole(case: Case, folder: Path) -> tuple[dict[str, bytes], int]:
    """The files of an uninterrupted session, and the number of its steps."""
    steps = Steps()
    case.run(folder, constant_rig(steps))
    return folder_bytes(folder), len(steps.seen)


def clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for suffix in (".transcript", ".computed"):
        folder.with_suffix(suffix).unlink(missing_ok=True)


def published_values(folder: Path) -> list[str]:
    values = [
        json.loads(path.read_bytes())["value"] for path in folder.glob("turns/*_response.json")
    ]
    return [value["key"] for value in values if value is not None]


def test_every_environment_of_the_registry_is_killed_here() -> None:
    assert {case.config["environment"] for case in CASES.values()} >= set(default_registry())


@pytest.mark.parametrize("name", CASES)
def test_killed_before_any_step_a_session_resumes_to_its_end(
    name: str, memory_path: Path, count: Count
) -> None:
    """The same bytes; or, where an ask that may have been sent is superseded, a folder
    that verifies."""
    case, cut = CASES[name], memory_path / "cut"
    expected, steps = whole(case, memory_path / "whole")
    repeats = not supersedes(case)
    chosen = share(range(steps), 60)
    for fatal in chosen:
        assert was_killed(run_forked(case, cut, fatal)), fatal
        already, before = published_values(cut), Counter(computed(cut))
        assert run_forked(case, cut, None, resume=True) == 0, fatal
        verdict = verify_folder(constant_rig(), cut)
        assert verdict.verified, (fatal, verdict.failure)
        if repeats:
            assert folder_bytes(cut) == expected, fatal
            check_transcript(cut)
        if not (cut / "tasks").exists():  # the session inside has computations of the same names
            again = Counter(computed(cut)) - before
            assert not set(already) & set(again), "a published computation was run again"
            assert sum(before.values()) + sum(again.values()) <= len(published_values(cut)) + 1
        clear(cut)
    count("kills before a durable step, each resumed", len(chosen), name)


def check_transcript(folder: Path) -> None:
    """Nothing was sent that was not durable, and what was sent again was the same bytes:
    but for repetitions, the client saw what an uninterrupted session sends."""
    notes = transcript_of(folder)
    assert all(note["durable"] for note in notes)
    messages = [note["message"] for note in notes]
    distinct = [m for i, m in enumerate(messages) if i == 0 or m != messages[i - 1]]
    records = [json.loads(path.read_bytes()) for path in record_paths(folder)]
    sent = [encode(r["message"]).decode() for r in records if r.get("message") is not None]
    assert distinct == sent


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_killed_again_and_again_at_random_a_session_still_ends_the_same(
    seed: int, memory_path: Path, count: Count
) -> None:
    # Now and then an optical session, which takes ten times as long.
    name = "optical direct" if seed % 10 == 9 else "thermometer"
    case = CASES[name]
    expected, steps = whole(case, memory_path / "whole")
    chance = random.Random(seed)
    cut = memory_path / "cut"
    kills = 0
    while was_killed(run_forked(case, cut, chance.randrange(0, steps), resume=True)):
        kills += 1
        assert kills < 1000
    assert folder_bytes(cut) == expected
    check_transcript(cut)
    count("sequences of random kills, each with the same end", 1, name, quietly=True)
    count("random kills", kills, name, quietly=True)


# -- broken drivers, which the checks above must catch -----------------------------


def sends_before_it_publishes() -> None:
    """Break the journal: a response is sent first, and published with the next record."""
    held: list[tuple[str, bytes]] = []
    genuine = Journal._publish

    def late(self: Journal, name: str, document: dict[str, object], timing: object) -> None:
        kept = self._kept
        real = kept.publish
        kept.publish = lambda name, data: held.append((name, data))  # type: ignore[method-assign]
        genuine(self, name, document, timing)
        kept.publish = real  # type: ignore[method-assign]
        if not name.endswith("_response.json"):
            while held:
                real(*held.pop(0))

    journal.Journal._publish = late  # type: ignore[method-assign]


def test_a_driver_that_sends_before_it_publishes_is_caught(memory_path: Path) -> None:
    run_forked(CASES["thermometer"], memory_path / "cut", None, before=sends_before_it_publishes)
    assert not all(note["durable"] for note in transcript_of(memory_path / "cut"))


def forgets_saved_values() -> None:
    """Break the journal: a saved computation is not found again."""
    journal.Journal.value = lambda self, turn, task: None  # type: ignore[method-assign]


def test_a_driver_that_repeats_a_published_computation_is_caught(memory_path: Path) -> None:
    case, cut = CASES["thermometer"], memory_path / "cut"
    _, steps = whole(case, memory_path / "whole")
    assert was_killed(run_forked(case, cut, steps - 8))
    already, count = published_values(cut), Counter(computed(cut))
    assert already
    run_forked(case, cut, None, resume=True, before=forgets_saved_values)
    assert set(already) & set(Counter(computed(cut)) - count)


def draws_a_new_nonce() -> None:
    """Break the resume: identifiers are made anew, as if the session were."""
    from probebench.app import session

    genuine = session.session_terms
    session.session_terms = lambda data: (bytes(32), genuine(data)[1])


def test_a_driver_that_resumes_under_another_nonce_is_caught(memory_path: Path) -> None:
    case, cut = CASES["thermometer"], memory_path / "cut"
    _, steps = whole(case, memory_path / "whole")
    assert was_killed(run_forked(case, cut, steps - 8))
    assert run_forked(case, cut, None, resume=True, before=draws_a_new_nonce) != 0
