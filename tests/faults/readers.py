"""Every reader of one document of a session folder, and a lawful document for it."""

from __future__ import annotations

from collections.abc import Callable

from probebench.app import freeze, seal
from probebench.app.journal import Journal, ReadOnlyRecords
from probebench.app.saved_values import value_check
from probebench.app.session import session_terms
from probebench.app.signature import Signature, read_signature
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Ask, Launch, Task
from tests.environments.test_conformance import CASES

MANIFEST = b"{}\n"
SIGNED = Signature(bytes(32), bytes(64)).document(MANIFEST)
TASK = Task("score-1", "score", {"x": 5})
HOSTED = Task("inner", "session", {"config": {}}, hosted=True)
ASK = Ask("ask-1", "agent", Launch.SHARED, {}, 1.0)


def read_manifest(data: bytes) -> None:
    seal.read_manifest(seal.decoded("manifest.json", data))


def read_evaluator(data: bytes) -> None:
    manifest = {"outcome": {"status": "submitted", "cause": "submitted"}}
    seal.read_evaluator(seal.decoded("evaluator.json", data), manifest)


def journal_of(data: bytes) -> Journal:
    environment = CASES["breeder"].environment()
    read = ReadOnlyRecords(lambda name: None if name.endswith("_fault.json") else data)
    return Journal(read, "0" * 64, check=value_check(environment))


RESPONSE = {
    "format": "probebench.response/1",
    "turn": 1,
    "value": {"key": "score-1", "kind": "score", "spec_sha256": "0" * 64, "value": 84},
    "rejection": None,
    "charge": {"computations": 1},
    "next": {"effect": "task", "key": "score-2", "kind": "score"},
    "message": None,
    "previous_sha256": "0" * 64,
    "timing": {"driver_s": 0.0, "task_s": 0.0},
}
INPUT = {
    "format": "probebench.input/1",
    "turn": 1,
    "ask": "ask-1",
    "received_base64": "e30K",
    "previous_sha256": "0" * 64,
    "timing": {"input_wait_s": 0.0, "deadline_s": 1.0},
}
STUDY = {
    "format": "probebench.study/2",
    "config": {"environment": "thermometer", "seed": "0" * 32},
    "runtime": {},
    "source": {"a.py": "0" * 64},
    "sandbox": None,
}
SESSION = {"nonce": "00" * 32, "display_runtime": {}, "previous_sha256": "0" * 64}
ENDED = {"outcome": {"status": "submitted", "cause": "submitted"}}
READERS: dict[str, tuple[Callable[[bytes], object], Json]] = {
    "study": (freeze.read_study, STUDY),
    "session": (session_terms, SESSION),
    "manifest": (read_manifest, {"format": "probebench.manifest/1", "files": {}, "sessions": {}}),
    "evaluator": (read_evaluator, ENDED),
    "signature": (lambda data: read_signature(data, MANIFEST), SIGNED),
    "input": (lambda data: journal_of(data).answer(1, ASK), INPUT),
    "value": (lambda data: journal_of(data).value(1, TASK), RESPONSE),
    "value of a session": (lambda data: journal_of(data).value(1, HOSTED), RESPONSE),
    "response": (lambda data: journal_of(data).settle("turn", {"message": None}, None), RESPONSE),
}
