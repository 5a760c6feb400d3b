"""The end of a session folder: evaluator.json, then manifest.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from probebench.app.drive import Driven
from probebench.app.members import may_belong
from probebench.kernel.budget import Budget
from probebench.kernel.canonical import Json, decode, digest, sha256_hex
from probebench.kernel.errors import ArtifactError
from probebench.kernel.turn import (
    EVALUATOR,
    EVALUATOR_FORMAT,
    MANIFEST,
    MANIFEST_FORMAT,
)


def outcome_document(driven: Driven) -> dict[str, Json]:
    """How the episode ended."""
    final = driven.final
    outcome = {"status": final.status, "cause": final.cause}
    return outcome if final.details is None else {**outcome, "details": final.details}


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


def decoded(name: str, data: bytes) -> Json:
    """The content of a file of canonical JSON.  Raises ArtifactError."""
    try:
        return decode(data)
    except ValueError as error:
        raise ArtifactError(name, str(error)) from None


def read_manifest(document: Json) -> dict[str, Json]:
    """Check that a manifest is whole.  Raises ArtifactError."""
    fields = {"format", "head_sha256", "outcome", "files", "sessions", "self_sha256"}
    if not isinstance(document, dict) or set(document) != fields:
        raise ArtifactError(MANIFEST, f"the fields are not exactly {', '.join(sorted(fields))}")
    if document["format"] != MANIFEST_FORMAT:
        raise ArtifactError(
            MANIFEST, f"the format is {document['format']!r:.80}; expected {MANIFEST_FORMAT!r}"
        )
    content = {key: value for key, value in document.items() if key != "self_sha256"}
    if document["self_sha256"] != digest(content):
        raise ArtifactError(MANIFEST, "self_sha256 is not the digest of its content")
    _require_outcome(document["outcome"])
    for name in ("files", "sessions"):
        if not isinstance(document[name], dict):
            raise ArtifactError(MANIFEST, f"{name} is not an object")
    for name in (*document["files"], *document["sessions"]):
        if not may_belong(name):
            raise ArtifactError(MANIFEST, f"{name!r:.80} is no name of a session's file")
    return document


def _require_outcome(outcome: Json) -> None:
    fields = ("status", "cause")
    if not isinstance(outcome, dict) or not all(isinstance(outcome.get(f), str) for f in fields):
        raise ArtifactError(MANIFEST, "outcome does not name a status and a cause")


def read_evaluator(document: Json, manifest: Mapping[str, Json]) -> dict[str, Json]:
    """Check that evaluator.json ends as the manifest does.  Raises ArtifactError."""
    if not isinstance(document, dict) or document.get("outcome") != manifest["outcome"]:
        raise ArtifactError(EVALUATOR, "its outcome is not that of the manifest")
    return document


def describe_files(names: Iterable[str], read: Callable[[str], bytes]) -> dict[str, Json]:
    """The manifest's entries, read one file at a time."""
    return {name: file_entry(read(name)) for name in sorted(names)}
