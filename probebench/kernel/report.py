"""A finished session as a person would want it: plain data, drawn elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from probebench.kernel.canonical import Json
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
    """What a session folder holds; evaluation is None where it is unfinished."""

    study: Study
    first_message: Json
    turns: Sequence[RecordedTurn]
    evaluator: Json


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

    report: a whole session.
    glance: one public message, in a few words, for the live view.
    """

    report: Callable[[RecordedSession], Report]
    glance: Callable[[Json], str]
