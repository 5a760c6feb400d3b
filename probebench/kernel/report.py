"""A finished session as a person would want it: plain data, drawn elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from probebench.kernel.canonical import Json
from probebench.kernel.page import Section
from probebench.kernel.study import Study


@dataclass(frozen=True)
class RecordedTurn:
    """What one turn left: the bytes that came, and the response record."""

    turn: int
    received: bytes | None
    fault: str | None
    response: Json


@dataclass(frozen=True)
class RecordedSession:
    """What a session folder holds; evaluator is None where it is unfinished.

    folder_name: without the way to it.
    head_sha256: digest of the last record of the chain, as it is on the disk.
    display_runtime: what drew the PNG files.
    """

    folder_name: str
    study: Study
    first_message: Json
    turns: Sequence[RecordedTurn]
    evaluator: Json
    head_sha256: str
    display_runtime: Json


@dataclass(frozen=True)
class Report:
    """Headline sentences, one table of turns, and tables of figures.

    headline: sentences, the outcome first.
    figures: (name, value with its unit) pairs.
    """

    headline: Sequence[str]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figures: Sequence[tuple[str, str]] = field(default=())


@dataclass(frozen=True)
class Reporter:
    """How an environment's sessions read.

    report: a whole session, in sentences and one table.
    glance: one public message, in a few words, for the live view.
    sections: what else there is to see of a session.
    """

    report: Callable[[RecordedSession], Report]
    glance: Callable[[Json], str]
    sections: Callable[[RecordedSession], Sequence[Section]]
