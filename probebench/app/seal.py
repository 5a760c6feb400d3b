"""The end of a session folder: evaluator.json, then manifest.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from probebench.app.drive import Driven
from probebench.app.freeze import SOURCE
from probebench.host.survey import NAME
from probebench.kernel.budget import Budget
from probebench.kernel.canonical import Json, digest, sha256_hex
from probebench.kernel.errors import ArtifactError
from probebench.kernel.study import Study
from probebench.kernel.turn import (
    EVALUATOR,
    EVALUATOR_FORMAT,
    MANIFEST,
    MANIFEST_FORMAT,
    SESSION,
    STUDY,
    TASKS,
    TURN_NAME,
)


def outcome_document(driven: Driven) -> dict[str, Json]:
    """How the episode ended."""
    status = "submitted" if driven.final.submitted else "failed"
    return {"status": status, "cause": driven.final.cause}


def evaluator_document(
    driven: Driven, budget: Budget, evaluation: Json, head: str
) -> dict[str, Json]:
    """The content of evaluator.json, bound to the last turn record."""
    return {
        "format": EVALUATOR_FORMAT,
        "head_sha256": head,
        "outcome": outcome_document(driven),
        "turns": driven.turns,
        "resources": {
            "limits": dict(budget.limits),
            "spent": dict.fromkeys(budget.limits, 0) | driven.spent,
        },
        "evaluation": evaluation,
    }


def manifest_document(driven: Driven, head: str, files: Mapping[str, Json]) -> dict[str, Json]:
    """The content of manifest.json.

    files: size and SHA-256 by name, of every file but the manifest.
    """
    document = {
        "format": MANIFEST_FORMAT,
        "head_sha256": head,
        "outcome": outcome_document(driven),
        "files": dict(files),
        "sessions": dict(driven.sessions),
    }
    # Lets verify tell a damaged manifest from a damaged file.
    return {**document, "self_sha256": digest(document)}


def file_entry(data: bytes) -> dict[str, Json]:
    """What the manifest says of one file."""
    return {"bytes": len(data), "sha256": sha256_hex(data)}


def read_manifest(document: Json) -> dict[str, Json]:
    """Check that a manifest is whole.  Raises ArtifactError."""
    fields = {"format", "head_sha256", "outcome", "files", "sessions", "self_sha256"}
    if not isinstance(document, dict) or set(document) != fields:
        raise ArtifactError(MANIFEST, f"the fields are not exactly {', '.join(sorted(fields))}")
    if document["format"] != MANIFEST_FORMAT:
        raise ArtifactError(
            MANIFEST, f"the format is {document['format']!r}; expected {MANIFEST_FORMAT!r}"
        )
    content = {key: value for key, value in document.items() if key != "self_sha256"}
    if document["self_sha256"] != digest(content):
        raise ArtifactError(MANIFEST, "self_sha256 is not the digest of its content")
    for name in ("files", "sessions"):
        if not isinstance(document[name], dict):
            raise ArtifactError(MANIFEST, f"{name} is not an object")
    for name in (*document["files"], *document["sessions"]):
        if not may_belong(name):
            raise ArtifactError(MANIFEST, f"{name!r:.80} is no name of a session's file")
    return document


def expected_names(study: Study, journal: Iterable[str]) -> set[str]:
    """The files of a finished session but for its manifest."""
    return {STUDY, EVALUATOR, *journal, *(SOURCE + path for path in study.source)}


def may_belong(name: str) -> bool:
    """Whether a name is one that some session's file can have."""
    if not NAME.fullmatch(name):
        return False
    fixed = name in {STUDY, SESSION, EVALUATOR, MANIFEST}
    return fixed or name.startswith((SOURCE, TASKS)) or TURN_NAME.fullmatch(name) is not None


def own_names(names: Iterable[str], sessions: Iterable[str]) -> list[str]:
    """The names that are not inside a session within this one."""
    prefixes = tuple(f"{folder}/" for folder in sessions)
    return [name for name in names if not (prefixes and name.startswith(prefixes))]


def require_members(present: Iterable[str], expected: Iterable[str]) -> None:
    """Raise ArtifactError naming the first file too few or too many."""
    present, expected = set(present), set(expected)
    # First what is missing: the folder that it leaves empty is no news.
    if missing := sorted(expected - present):
        raise ArtifactError(missing[0], "this file is missing")
    if extra := sorted(present - expected):
        raise ArtifactError(extra[0], "this does not belong to the session")


def describe_files(names: Iterable[str], read: Callable[[str], bytes]) -> dict[str, Json]:
    """The manifest's entries, read one file at a time."""
    return {name: file_entry(read(name)) for name in sorted(names)}
