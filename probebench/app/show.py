"""Read a session folder, finished or not, for a person to look at."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from probebench.app import freeze, seal
from probebench.app.registry import entry_of
from probebench.app.rig import Rig
from probebench.host.folder import is_folder
from probebench.host.store import Store
from probebench.kernel import turn as records
from probebench.kernel.canonical import Json, sha256_hex
from probebench.kernel.errors import ArtifactError, OperatorError
from probebench.kernel.page import Section
from probebench.kernel.report import RecordedSession, RecordedTurn, Report


def read_session(folder: Path) -> RecordedSession:
    """What a session folder holds; nothing is verified.

    Raises OperatorError where there is no session, ArtifactError for a record
    that cannot be read.
    """
    if not is_folder(folder):
        raise OperatorError(
            f"there is no session folder {str(folder)!r} to show; give the folder of a session"
        )
    with Store.open_readonly(folder) as store:
        if not (store.exists(records.STUDY) and store.exists(records.SESSION)):
            raise OperatorError(
                f"the folder {str(folder)!r} holds no session that was begun; give another folder"
            )
        with read_as_written():
            return _session(store, folder.resolve().name)


def report_of(rig: Rig, session: RecordedSession) -> Report:
    """A session as its environment tells it; any other as plain turns.

    Raises ArtifactError for records that are not as the driver writes them.
    """
    reporter = entry_of(rig.registry, session.study.config).reporter
    with read_as_written():
        return _plain(session) if reporter is None else reporter.report(session)


def sections_of(rig: Rig, session: RecordedSession) -> Sequence[Section]:
    """What else the environment has to show; nothing where it has no reporter.

    Raises ArtifactError for records that are not as the driver writes them.
    """
    reporter = entry_of(rig.registry, session.study.config).reporter
    with read_as_written():
        return [] if reporter is None else reporter.sections(session)


@contextmanager
def read_as_written() -> Iterator[None]:
    """Whatever is made of records within it raises ArtifactError where they are damaged."""
    # A folder is looked at before it is verified, so that any field of any
    # record may be missing or be something else.
    try:
        yield
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ArtifactError(
            "the records",
            f"they do not read as a session ({type(error).__name__}: {error}); "
            "`probebench verify` names the one that is damaged",
        ) from error


def _session(store: Store, folder_name: str) -> RecordedSession:
    opening, turns = _document(store, records.SESSION), _turns(store)
    finished = store.exists(records.EVALUATOR)
    return RecordedSession(
        folder_name=folder_name,
        study=freeze.read_study(store.read(records.STUDY)),
        first_message=opening["message"],
        turns=turns,
        evaluator=_document(store, records.EVALUATOR) if finished else None,
        head_sha256=sha256_hex(store.read(_last_record(store, len(turns)))),
        display_runtime=opening["display_runtime"],
    )


def _last_record(store: Store, turns: int) -> str:
    # An answer may stand on the disk whose response was not reached.
    answers = (records.input_name(turns + 1), records.fault_name(turns + 1))
    unanswered = next((name for name in answers if store.exists(name)), None)
    answered = records.response_name(turns) if turns else records.SESSION
    return unanswered or answered


def _turns(store: Store) -> list[RecordedTurn]:
    turns: list[RecordedTurn] = []
    for turn in count(1):
        name = records.response_name(turn)
        if not store.exists(name):
            return turns
        received, fault = _answer(store, turn)
        turns.append(RecordedTurn(turn, received, fault, _document(store, name)))
    raise AssertionError("count() does not end")


def _answer(store: Store, turn: int) -> tuple[bytes | None, str | None]:
    for name in (records.input_name(turn), records.fault_name(turn)):
        if store.exists(name):
            document = _document(store, name)
            fault = document["fault"]["kind"] if "fault" in document else None
            return base64.b64decode(document["received_base64"]), fault
    return None, None


def _document(store: Store, name: str) -> Json:
    return seal.decoded(name, store.read(name))


def _plain(session: RecordedSession) -> Report:
    rows = [
        (
            str(t.turn),
            t.fault or (t.received or b"").decode(errors="replace").strip(),
            t.response["rejection"] or "",
        )
        for t in session.turns
    ]
    outcome = "unfinished" if session.evaluator is None else session.evaluator["outcome"]["status"]
    return Report([f"The session is {outcome}."], ("turn", "received", "rejection"), rows)
