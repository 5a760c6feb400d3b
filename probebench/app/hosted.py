"""Tasks that need the application: a session within a session.

The inner session has a folder of its own, with its own lock, journal and
manifest; the outer journal saves the digest of that manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from probebench.app.rig import Clients
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Task
from probebench.kernel.turn import task_folder

KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Finished(Protocol):
    """What is used of a finished session."""

    @property
    def manifest_sha256(self) -> str:
        """Digest of its manifest."""
        ...

    @property
    def evaluator(self) -> Json:
        """The content of its evaluator.json."""
        ...


RunInner = Callable[[Path, Json, Clients], Finished]


def run(folder: Path, task: Task, clients: Clients, run_inner: RunInner) -> Json:
    """Run, or resume, the inner session that a hosted task asks for.

    folder: of the outer session.  The task's spec is {"config": ...}.
    run_inner: (folder, config, clients) to the finished session; an argument,
        because sessions contain sessions.
    Returns {"manifest_sha256", "outcome", "evaluation"}.
    """
    if task.kind != "session" or not KEY.fullmatch(task.key):
        raise LookupError(f"no hosted task is of kind {task.kind!r} with key {task.key!r}")
    inner = clients.nested()
    try:
        outcome = run_inner(folder / task_folder(task.key), task.spec["config"], inner)
    finally:
        inner.close()
    return value_of(outcome.manifest_sha256, outcome.evaluator)


def require_value(value: Json) -> None:
    """Raise ValueError for what is no value of a session within a session."""
    fields = {"manifest_sha256", "outcome", "evaluation"}
    if not isinstance(value, dict) or set(value) != fields:
        raise ValueError(f"it does not have exactly {', '.join(sorted(fields))}")
    if not isinstance(value["manifest_sha256"], str):
        raise ValueError("its manifest_sha256 is not a digest")


def value_of(manifest_sha256: str, evaluator: Json) -> Json:
    """The value of a session within a session."""
    return {
        "manifest_sha256": manifest_sha256,
        "outcome": evaluator["outcome"],
        "evaluation": evaluator["evaluation"],
    }
