"""Any bytes in the place of a record: its name and a sentence, whoever reads it."""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from probebench.app import seal
from probebench.app.html import session_page
from probebench.app.journal import Journal
from probebench.app.printing import outcome_document, verdict_document
from probebench.app.session import frozen_config
from probebench.app.show import read_as_written, read_session, report_of, sections_of
from probebench.app.terminal import print_session
from probebench.app.transcript import read_transcript
from probebench.kernel.canonical import Json, decode, encode
from probebench.kernel.episode import Task
from probebench.kernel.errors import ArtifactError, OperatorError, ProbebenchError
from tests.conformance import Case
from tests.environments.test_conformance import CASES
from tests.faults.finished import RIG, rechained, resealed, verdict_of
from tests.faults.fuzz import changed, damaged, is_sentence
from tests.faults.readers import READERS, RESPONSE, SESSION
from tests.faults.share import Count
from tests.rigs import constant_rig

# One folder for every hundred lines that are fuzzed.
FOLDERS = int(os.environ.get("PROBEBENCH_FUZZ", "6000")) // 100
OPENED = ("submitted", "failed", "not-run")


# -- whole folders --------------------------------------------------------------------


def told(reader: Callable[..., object], *given: object) -> str:
    """How a reader ends: well, or with a typed error of one sentence."""
    ended = "read"
    try:
        reader(*given)
    except ProbebenchError as error:
        ended, said = type(error).__name__, str(error)
    else:
        return ended
    assert is_sentence(said, most=2000), said
    return ended


def shown(folder: Path) -> None:
    """On a terminal and as a page, as the command does it."""
    session = read_session(folder)
    with read_as_written():
        report, sections = report_of(RIG, session), sections_of(RIG, session)
        print_session(report, sections, Console(file=io.StringIO()))
        session_page(session, report, sections)


def verified(folder: Path) -> None:
    verdict = verdict_of(folder)
    encode(verdict_document(verdict))
    if verdict.failure is not None:
        raise verdict.failure


def resumed(case: Case, folder: Path) -> None:
    assert outcome_document(case.run(folder, constant_rig(), resume=True))["status"] in OPENED


def cut_short(chance: Random, folder: Path) -> None:
    """Take some of the last files away, as a kill would."""
    (folder / "manifest.json").unlink()
    if chance.random() < 0.7:
        (folder / "evaluator.json").unlink()
        # By turn; of one turn, the input before its response.
        turns = sorted((folder / "turns").iterdir())
        for path in turns[chance.randrange(1, len(turns) + 1) :]:
            path.unlink()


def spoilt(chance: Random, folder: Path) -> str:
    """Change one file; now and then repair its hash, or every link as well."""
    path = chance.choice(sorted(folder.rglob("*.json")))
    data, kind = path.read_bytes(), chance.randrange(4)
    path.write_bytes(damaged(chance, data) if kind == 0 else encode(changed(chance, decode(data))))
    # A forger cannot repair what is no document any more.
    with suppress(ProbebenchError, OSError, ValueError, KeyError, TypeError, AttributeError):
        if kind == 3:
            rechained(folder)
        if kind >= 2:
            resealed(folder)
    return path.name


def fuzz_folders(case: Case, whole: Path, count: int, seed: int) -> Counter[str]:
    """Spoil a folder again and again, and have everything read it that reads folders."""
    ends = Counter[str]()
    for number in range(count):
        chance = Random(f"{seed}/{number}")
        folder = whole.with_name("spoilt")
        shutil.copytree(whole, folder)
        if chance.random() < 0.4:
            cut_short(chance, folder)
        spoilt(chance, folder)
        ends[f"verify: {told(verified, folder)}"] += 1
        ends[f"show: {told(shown, folder)}"] += 1
        ends[f"configuration: {told(frozen_config, RIG, folder)}"] += 1
        # Twice: what the first wrote, the second reads.
        ends[f"resume: {told(resumed, case, folder)}"] += 1
        ends[f"resume again: {told(resumed, case, folder)}"] += 1
        shutil.rmtree(folder)
    return ends


@pytest.mark.parametrize("name", CASES)
def test_a_spoilt_folder_is_named_by_whoever_reads_it(
    name: str, memory_path: Path, count: Count
) -> None:
    CASES[name].run(memory_path / "whole", constant_rig())
    ends = fuzz_folders(CASES[name], memory_path / "whole", FOLDERS // len(CASES) + 1, seed=1)
    count("fuzzed folders, each read in five ways", ends.total() // 5, name, str(dict(ends)))
    assert ends["verify: ArtifactError"]


# -- one document -----------------------------------------------------------------------


HOSTILE = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
CHANCE = st.randoms(use_true_random=False)


def check_reader(read: Callable[[bytes], object], document: Json) -> None:
    near = CHANCE.map(lambda chance: encode(changed(chance, document)))
    broken = CHANCE.map(lambda chance: damaged(chance, encode(document)))

    @HOSTILE
    @given(near | broken | st.binary(max_size=200))
    def check(data: bytes) -> None:
        with suppress(ArtifactError):
            read(data)

    check()


@pytest.mark.parametrize("name", READERS)
def test_a_reader_of_records_reads_or_names_the_artifact(name: str) -> None:
    check_reader(*READERS[name])


def test_a_transcript_is_read_or_the_operator_is_told(tmp_path: Path) -> None:
    near = CHANCE.map(lambda chance: encode(changed(chance, RESPONSE)))
    path = tmp_path / "transcript.jsonl"

    @HOSTILE
    @given(st.lists(near | st.binary(max_size=60), max_size=4).map(b"".join))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(OperatorError):
            read_transcript(path)

    check()


# -- broken readers, which the checks above must catch --------------------------------------


def test_a_value_that_is_handed_on_unchecked_is_caught(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchecked(self: Journal, name: str, task: Task, value: Json) -> None:
        del self, name, task, value

    monkeypatch.setattr(Journal, "_require_fit", unchecked)
    case = CASES["breeder with a session inside"]
    case.run(memory_path / "whole", constant_rig())
    with pytest.raises((KeyError, TypeError, AttributeError)):
        fuzz_folders(case, memory_path / "whole", 2000, seed=1)


def test_a_reader_that_trusts_what_it_reads_is_caught() -> None:
    def trusting(data: bytes) -> bytes:
        return bytes.fromhex(seal.decoded("session.json", data)["nonce"])

    with pytest.raises((KeyError, TypeError, ValueError, ExceptionGroup)):
        check_reader(trusting, SESSION)
