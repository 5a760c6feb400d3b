"""Turns as records: names, contents, and the hash chain that links them.

A turn is at most one answer of a client and at most one computed value:

    turns/turn_0001_input.json     the exact bytes that came in, or
    turns/turn_0001_fault.json     what came in their place,
    turns/turn_0001_response.json  what the episode made of it: saved values,
                                   charge, and the message that follows.

The first record is published before it is applied, the second before it is
sent.  A turn that only computes has the second alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final as Constant

from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json, decode, encode, sha256_hex
from probebench.kernel.episode import Ask, Effect, Fault, FaultKind, Launch, Task
from probebench.kernel.framing import MAX_LINE_BYTES

STUDY: Constant = "study.json"
SESSION: Constant = "session.json"
EVALUATOR: Constant = "evaluator.json"
MANIFEST: Constant = "manifest.json"

SESSION_FORMAT: Constant = "probebench.session/1"
INPUT_FORMAT: Constant = "probebench.input/1"
FAULT_FORMAT: Constant = "probebench.fault/1"
RESPONSE_FORMAT: Constant = "probebench.response/1"
EVALUATOR_FORMAT: Constant = "probebench.evaluator/1"
MANIFEST_FORMAT: Constant = "probebench.manifest/1"

TASKS: Constant = "tasks/"
TURN_NAME: Constant = re.compile(r"turns/turn_(\d{4,})_(input|fault|response)\.json")


def input_name(turn: int) -> str:
    """The record of the bytes that answered in turn ``turn``, from 1."""
    return f"turns/turn_{turn:04d}_input.json"


def fault_name(turn: int) -> str:
    """The record of what came in place of an answer."""
    return f"turns/turn_{turn:04d}_fault.json"


def response_name(turn: int) -> str:
    """The record of what the episode made of a turn."""
    return f"turns/turn_{turn:04d}_response.json"


def task_folder(key: str) -> str:
    """The folder of a hosted task's own session."""
    return f"{TASKS}{key}"


def chain_root(nonce: bytes, study: bytes) -> str:
    """The digest that the first record is linked to.

    Keyed by the unpublished nonce: without it, a client that sees the root
    could test guesses of the hidden configuration against it.
    """
    return hmac.new(nonce, b"chain root\n" + study, hashlib.sha256).hexdigest()


def request_id(nonce: bytes, index: int) -> str:
    """The identifier of the request ``index``: HMAC-SHA256, 128 bits, in hex.

    Unguessable without the nonce, and equal again on every replay.
    """
    return hmac.new(nonce, b"request %d" % index, hashlib.sha256).hexdigest()[:32]


def stamped(effect: Effect, witness_sha256: str) -> Json:
    """The message that an effect sends: an ask's body with its witness, a
    farewell, or None.
    """
    if isinstance(effect, Task):
        return None
    body = effect.body if isinstance(effect, Ask) else effect.farewell
    if body is None or effect.witness is None:
        return body
    return {**body, effect.witness: witness_sha256}


# -- what is in a record ----------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What came for an ask: the exact bytes of a line, or a fault.

    data: the line, newline included; with a fault, the unterminated rest.
    """

    data: bytes
    fault: Fault | None = None


def session_document(
    nonce: bytes, display_runtime: Json, charge: Charge, effect: Effect, root: str
) -> dict[str, Json]:
    """The content of session.json but for its link.

    charge: what opening the episode spent.
    """
    return {
        "format": SESSION_FORMAT,
        "nonce": nonce.hex(),
        "display_runtime": display_runtime,
        "charge": dict(charge),
        "next": _described(effect),
        "message": stamped(effect, root),
    }


def answer_document(turn: int, ask: Ask, answer: Answer) -> dict[str, Json]:
    """The content of an input or fault record but for its link and timing."""
    document: dict[str, Json] = {
        "format": INPUT_FORMAT if answer.fault is None else FAULT_FORMAT,
        "turn": turn,
        "ask": ask.key,
        "received_base64": base64.b64encode(answer.data).decode(),
    }
    if answer.fault is not None:
        document["fault"] = {
            "kind": answer.fault.kind.value,
            "exit_code": answer.fault.exit_code,
        }
    return document


def answer_from(document: Json, launch: Launch) -> Answer:
    """Read an input or fault record of an ask to a client of ``launch``.

    Raises ValueError, KeyError or TypeError for a document that is none.
    """
    try:
        data = base64.b64decode(document["received_base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"received_base64 is not base64: {error}") from None
    if document["format"] == INPUT_FORMAT:
        _require_line(data, launch)
        return Answer(data)
    fault = document["fault"]
    return Answer(data, Fault(FaultKind(fault["kind"]), fault["exit_code"]))


def _require_line(data: bytes, launch: Launch) -> None:
    """What no channel lets through was never received."""
    if len(data) > MAX_LINE_BYTES:
        raise ValueError(f"it holds {len(data)} bytes, more than a line may have")
    if launch is Launch.SHARED and (data.count(b"\n") != 1 or not data.endswith(b"\n")):
        raise ValueError("it does not hold exactly one line")


@dataclass(frozen=True)
class SavedValue:
    """A computed value, bound to what it was computed from."""

    key: str
    kind: str
    spec_sha256: str
    value: Json

    @classmethod
    def of(cls, task: Task, value: Json) -> SavedValue:
        """Bind ``value`` to ``task``."""
        return cls(task.key, task.kind, sha256_hex(encode(task.spec)), value)

    def belongs_to(self, task: Task) -> bool:
        """Whether this is the value of exactly this task."""
        return self == SavedValue.of(task, self.value)


def response_document(
    turn: int,
    value: SavedValue | None,
    rejection: str | None,
    charge: Charge,
    effect: Effect,
    witness_sha256: str,
) -> dict[str, Json]:
    """The content of a response record but for its link and timing."""
    return {
        "format": RESPONSE_FORMAT,
        "turn": turn,
        "value": None if value is None else vars(value),
        "rejection": rejection,
        "charge": dict(charge),
        "next": _described(effect),
        "message": stamped(effect, witness_sha256),
    }


def _described(effect: Effect) -> dict[str, Json]:
    if isinstance(effect, Ask):
        return {
            "effect": "ask",
            "key": effect.key,
            "port": effect.port,
            "launch": effect.launch.value,
        }
    if isinstance(effect, Task):
        return {"effect": "task", "key": effect.key, "kind": effect.kind}
    return {"effect": "final", "submitted": effect.submitted, "cause": effect.cause}


# -- the chain --------------------------------------------------------------


@dataclass
class Chain:
    """The digest of the last record, which the next one must carry."""

    head: str

    def link(self, document: dict[str, Json], timing: Json = None) -> bytes:
        """The bytes of the next record; the chain moves on to them."""
        linked = {**document, "previous_sha256": self.head}
        if timing is not None:
            linked["timing"] = timing
        data = encode(linked)
        self.head = sha256_hex(data)
        return data

    def follow(self, data: bytes) -> dict[str, Json]:
        """Check that saved bytes are canonical and continue the chain.

        Returns the document without its link and timing.  Raises ValueError.
        """
        document = record_from(data)
        if document.pop("previous_sha256") != self.head:
            raise ValueError("previous_sha256 is not the digest of the record before it")
        self.head = sha256_hex(data)
        expected = TIMING.get(str(document.get("format")), frozenset())
        require_durations(document.pop("timing", {}), expected)
        return document


# Which durations a record of each format carries, seconds.
TIMING = {
    INPUT_FORMAT: frozenset({"input_wait_s", "deadline_s"}),
    FAULT_FORMAT: frozenset({"input_wait_s", "deadline_s"}),
    RESPONSE_FORMAT: frozenset({"driver_s", "task_s"}),
}


def require_durations(timing: Json, expected: Collection[str]) -> None:
    """Raise ValueError unless ``timing`` holds exactly these durations."""
    if not isinstance(timing, dict) or set(timing) != set(expected):
        raise ValueError(f"timing does not have exactly {', '.join(sorted(expected)) or 'nothing'}")
    for name, value in timing.items():
        if not isinstance(value, float) or value < 0:
            raise ValueError(f"timing.{name} is not a duration in seconds")


def record_from(data: bytes) -> dict[str, Json]:
    """Read the bytes of a record.  Raises ValueError."""
    document = decode(data)
    if not isinstance(document, dict) or "previous_sha256" not in document:
        raise ValueError("the content is not a record that links to another")
    return document
