"""Tasks that need the application: a session within a session.

The inner session has a folder of its own, with its own lock, journal and
manifest; the outer journal saves the digest of that manifest.
"""

from __future__ import annotations

import re
from pathlib import Path

from probebench.app.rig import Clients, Rig
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Task
from probebench.kernel.turn import task_folder

KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def run(rig: Rig, folder: Path, task: Task, clients: Clients) -> Json:
    """Run, or resume, the inner session that a hosted task asks for.

    folder: of the outer session.  The task's spec is {"config": ...}.
    Returns {"manifest_sha256", "outcome", "evaluation"}.
    """
    # Sessions contain sessions, so the two modules need each other.
    from probebench.app.session import run_session

    if task.kind != "session" or not KEY.fullmatch(task.key):
        raise LookupError(f"no hosted task is of kind {task.kind!r} with key {task.key!r}")
    inner = clients.nested()
    try:
        outcome = run_session(rig, folder / task_folder(task.key), task.spec["config"], inner, resume=True)
    finally:
        inner.close()
    return value_of(outcome.manifest_sha256, outcome.evaluator)


def value_of(manifest_sha256: str, evaluator: Json) -> Json:
    """The value of a session within a session."""
    return {
        "manifest_sha256": manifest_sha256,
        "outcome": evaluator["outcome"],
        "evaluation": evaluator["evaluation"],
    }
