"""Which files a session folder may hold, before and after its manifest."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from probebench.app.freeze import SOURCE
from probebench.host.survey import NAME, final_name, is_temporary
from probebench.kernel.errors import ArtifactError, OperatorError
from probebench.kernel.study import Study
from probebench.kernel.turn import (
    EVALUATOR,
    MANIFEST,
    SESSION,
    STUDY,
    TASKS,
    TURN_NAME,
    response_name,
)

TURNS = "turns/"
FIXED = {STUDY, SESSION, EVALUATOR, MANIFEST}


def may_belong(name: str) -> bool:
    """Whether a name is one that some session's file can have."""
    if not NAME.fullmatch(name):
        return False
    return _is_record(name) or name.startswith((SOURCE, TASKS))


def expected_names(study: Study, journal: Iterable[str]) -> set[str]:
    """The files of a finished session but for its manifest."""
    return {STUDY, EVALUATOR, *journal, *(SOURCE + path for path in study.source)}


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


# -- before the manifest ------------------------------------------------------------


def require_unfinished(names: Collection[str], sources: Collection[str]) -> None:
    """Check the names in a folder whose session has begun and not ended.

    sources: paths of the frozen source files.  What a killed driver left half
    published, and folders that it had only just made, are no finding.
    Raises ArtifactError naming what no driver put there, or a turn that is
    missing before others.
    """
    for name in names:
        final = _final(name)
        inside = final.startswith(TASKS) or final == TURNS
        if not (inside or _is_source(final, sources) or _is_record(final)):
            raise ArtifactError(name, "this does not belong to the session")
    _require_consecutive(set(names))


def require_nothing_foreign(names: Iterable[str], sources: Collection[str]) -> None:
    """Check a folder in which no session is frozen yet, before anything is written.

    Raises OperatorError where it holds anything but the beginnings of one.
    """
    for name in names:
        final = _final(name)
        if not (_is_source(final, sources) or (final == STUDY and is_temporary(name))):
            raise OperatorError(
                f"the folder holds {name!r:.120} and no session to go on with; name another folder"
            )


def _final(name: str) -> str:
    return final_name(name) if is_temporary(name) else name


def _is_source(name: str, sources: Collection[str]) -> bool:
    """Whether this is a frozen source file, or an empty folder for some."""
    if not name.endswith("/"):
        return name.removeprefix(SOURCE) in sources and name.startswith(SOURCE)
    return any((SOURCE + path).startswith(name) for path in sources)


def _is_record(name: str) -> bool:
    return name in FIXED or TURN_NAME.fullmatch(name) is not None


def _require_consecutive(names: Collection[str]) -> None:
    """Every turn but the last has its response."""
    turns = {int(match[1]) for name in names if (match := TURN_NAME.fullmatch(name))}
    for turn in range(1, max(turns, default=0)):
        if response_name(turn) not in names:
            sentence = "this record is missing, although later ones are there"
            raise ArtifactError(response_name(turn), sentence)
