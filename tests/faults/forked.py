"""Run a session in a forked process that may be killed, and look at what it left."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probebench.app.rig import Rig
from probebench.app.session import run_session
from probebench.host.filesystem import Filesystem
from probebench.kernel.budget import Budget
from probebench.kernel.canonical import Json, encode
from probebench.kernel.environment import Environment
from probebench.kernel.episode import Ask, Episode, Final, Task
from probebench.kernel.study import Study
from probebench.kernel.turn import Answer
from tests.conformance import Case
from tests.rigs import constant_rig, registry


class KillingFilesystem(Filesystem):
    """Kills its own process, for good, before the step ``fatal``."""

    def __init__(self, fatal: int | None) -> None:
        self.fatal = fatal
        self.count = 0

    def before(self, step: str, name: str) -> None:
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


class WitnessClient:
    """Answers from the current request, and keeps a transcript on disk."""

    def __init__(self, case: Case, folder: Path, transcript: Path) -> None:
        self._case = case
        self._folder = folder
        self._transcript = transcript

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Json]:
        self._note(message)
        body = json.loads(message)
        return Answer(self._case.reply(ask, body)), {
            "input_wait_s": 0.0,
            "deadline_s": ask.deadline_s,
        }

    def farewell(self, final: Final, message: bytes) -> None:
        if message:
            self._note(message)

    def nested(self) -> WitnessClient:
        return self

    def close(self) -> None:
        return

    def _note(self, message: bytes) -> None:
        note = {"durable": is_durable(self._folder, message), "message": message.decode()}
        with self._transcript.open("ab") as file:
            file.write(encode(note))


def is_durable(folder: Path, message: bytes) -> bool:
    """Whether a record that sends exactly this message stands in the folder."""
    records = [folder / "session.json", *sorted((folder / "turns").glob("*_response.json"))]
    return any(
        path.exists() and encode(json.loads(path.read_bytes())["message"]) == message
        for path in records
    )


class CountedEnvironment(Environment):
    """An environment that notes each computation on disk before it is done."""

    def __init__(self, environment: Environment, notes: Path) -> None:
        self._genuine = environment
        self._notes = notes
        self.id = environment.id

    def run(self, task: Task) -> Json:
        with self._notes.open("ab") as file:
            file.write(task.key.encode() + b"\n")
        return self._genuine.run(task)

    def configure(self, config: Json) -> None:
        self._genuine.configure(config)

    def budget(self, study: Study) -> Budget:
        return self._genuine.budget(study)

    def open(self, study: Study, nonce: bytes) -> Episode:
        return self._genuine.open(study, nonce)

    def evaluate(self, study: Study, final: Final) -> Json:
        return self._genuine.evaluate(study, final)


def counted_rig(case: Case, filesystem: Filesystem, notes: Path) -> Rig:
    """A constant rig whose computations are counted."""
    name = case.config["environment"]
    entries = registry()
    entries[name] = replace(
        entries[name], environment=CountedEnvironment(entries[name].environment, notes)
    )
    return replace(constant_rig(filesystem), registry=entries)


Before = Callable[[], None]


def run_forked(
    case: Case,
    folder: Path,
    fatal: int | None,
    *,
    resume: bool = False,
    before: Before | None = None,
) -> int:
    """Run or resume a session in a child; returns its wait status.

    before: called in the child first; a broken driver is made there.
    """
    transcript, notes = folder.with_suffix(".transcript"), folder.with_suffix(".computed")
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        if before is not None:
            before()
        rig = counted_rig(case, KillingFilesystem(fatal), notes)
        run_session(
            rig, folder, case.config, WitnessClient(case, folder, transcript), resume=resume
        )
        status = 0
    except BaseException:  # noqa: BLE001 - a child must not run on into pytest
        traceback.print_exc()
    finally:
        os._exit(status)


def transcript_of(folder: Path) -> list[dict[str, Any]]:
    """What the client was sent, by all processes in turn."""
    path = folder.with_suffix(".transcript")
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def computed(folder: Path) -> Sequence[str]:
    """Keys of the computations that were begun, by all processes in turn."""
    path = folder.with_suffix(".computed")
    return path.read_text().split() if path.exists() else []


def was_killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
