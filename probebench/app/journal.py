"""The records of one session: read while they last, written from there on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from probebench.kernel import turn as records
from probebench.kernel.canonical import Json, encode
from probebench.kernel.environment import Part
from probebench.kernel.episode import Ask, Task
from probebench.kernel.errors import ArtifactError, UnfinishedError


class Records(Protocol):
    """Where records are kept."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a record, or None where there is none."""
        ...

    def publish(self, name: str, data: bytes) -> None:
        """Make a record durable; return only when it is."""
        ...


Agree = Callable[[Part, Json, Json], bool]
Check = Callable[[Task, Json], None]


class Journal:
    """The hash-chained turn records of a session.

    Asked for what is saved, it reads, checks and hands it out; given what is
    not saved yet, it publishes.  Either way the chain moves on by one record.
    """

    def __init__(
        self,
        kept: Records,
        root: str,
        agree: Agree | None = None,
        check: Check | None = None,
    ) -> None:
        """root: the digest that the first record carries.
        agree: how to compare a message that another runtime recomputed; None
            where the runtime is the frozen one, so that bytes must be equal.
        check: raises ValueError, KeyError or TypeError for a saved value that
            is none of its task's, before the episode is handed it.
        """
        self._kept = kept
        self._chain = records.Chain(root)
        self._agree = agree
        self._check = check
        self.message = b""  # the canonical bytes that the last record sends
        self.message_was_saved = False
        self.names: list[str] = []  # of the records, in the order of the chain

    @property
    def head(self) -> str:
        """Digest of the last record."""
        return self._chain.head

    def answer(self, turn: int, ask: Ask) -> records.Answer | None:
        """The saved answer of a turn, or None where the journal ends."""
        names = (records.input_name(turn), records.fault_name(turn))
        saved = {name: data for name in names if (data := self._kept.read(name)) is not None}
        if not saved:
            return None
        if len(saved) > 1:
            raise ArtifactError(names[1], f"turn {turn} has an input record as well")
        ((name, data),) = saved.items()
        return self._follow_answer(name, data, turn, ask)

    def keep_answer(self, turn: int, ask: Ask, answer: records.Answer, timing: Json) -> None:
        """Publish what came for an ask, before anything is made of it."""
        name = records.input_name(turn) if answer.fault is None else records.fault_name(turn)
        self._publish(name, records.answer_document(turn, ask, answer), timing)

    def value(self, turn: int, task: Task) -> records.SavedValue | None:
        """The saved value of a turn's task, or None where the journal ends."""
        name = records.response_name(turn)
        data = self._kept.read(name)
        if data is None:
            return None
        try:
            saved = records.SavedValue(**records.record_from(data)["value"])
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(name, f"its value cannot be read ({error})") from None
        if not saved.belongs_to(task):
            raise ArtifactError(name, f"its value is not that of task {task.key!r}")
        self._require_fit(name, task, saved.value)
        return saved

    def settle(self, name: str, document: dict[str, Json], timing: Json) -> None:
        """Compare a record with the saved one, or publish it."""
        data = self._kept.read(name)
        if data is None:
            self._publish(name, document, timing)
            sent = document["message"]
        else:
            sent = self._compare(name, data, document)
        self.message = b"" if sent is None else encode(sent)
        self.message_was_saved = data is not None

    def _require_fit(self, name: str, task: Task, value: Json) -> None:
        try:
            if self._check is not None:
                self._check(task, value)
        except (ValueError, KeyError, TypeError) as error:
            sentence = f"the saved value does not fit its computation: {error}"
            raise ArtifactError(name, sentence) from None

    def _follow_answer(self, name: str, data: bytes, turn: int, ask: Ask) -> records.Answer:
        document = self._follow(name, data)
        try:
            answer = records.answer_from(document, ask.launch)
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(name, f"the record cannot be read ({error})") from None
        if document != records.answer_document(turn, ask, answer):
            raise ArtifactError(name, f"the record does not answer ask {ask.key!r} of turn {turn}")
        return answer

    def _compare(self, name: str, data: bytes, document: dict[str, Json]) -> Json:
        saved = self._follow(name, data)
        if encode(saved) == encode(document):
            return saved["message"]
        fields = sorted(
            key for key in saved.keys() | document.keys() if saved.get(key) != document.get(key)
        )
        if fields == ["message"] and self._agree is not None:
            if self._agree(Part.MESSAGE, saved["message"], document["message"]):
                return saved["message"]
        raise ArtifactError(name, f"replay gives another content for {', '.join(fields)}")

    def _follow(self, name: str, data: bytes) -> dict[str, Json]:
        try:
            document = self._chain.follow(data)
        except ValueError as error:
            raise ArtifactError(name, str(error)) from None
        self.names.append(name)
        return document

    def _publish(self, name: str, document: dict[str, Json], timing: Json) -> None:
        self._kept.publish(name, self._chain.link(document, timing))
        self.names.append(name)


class ReadOnlyRecords:
    """Records that end: what is not there is not made."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self.read = read

    def publish(self, name: str, data: bytes) -> None:
        """Raise UnfinishedError: verification writes nothing."""
        del data
        raise UnfinishedError(
            name, "the journal ends before this record; the session is unfinished"
        )
