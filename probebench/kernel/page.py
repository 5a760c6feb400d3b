"""A session as sections of plain blocks, which the page and the terminal both draw.

An environment says what there is to see; it writes no markup, so that nothing
a client sent can become any.  Text may hold whatever came in: who draws it
passes it through ``visible``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Ticks: TypeAlias = Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Note:
    """A sentence or two."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns.

    verbatim: names of the columns that hold exact text, as it came.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    verbatim: Sequence[str] = ()


@dataclass(frozen=True)
class Bar:
    """One quantity.

    fraction: of the scale's end, within -1 to 1.
    text: the quantity with its unit.
    spread: its standard deviation, as a fraction of the scale's end, or None.
    """

    name: str
    fraction: float
    text: str
    spread: float | None = None


@dataclass(frozen=True)
class Bars:
    """Quantities on one scale, from 0 to its end or, where signed, to both sides of 0."""

    title: str
    bars: Sequence[Bar]
    signed: bool = False


@dataclass(frozen=True)
class Series:
    """Points that belong together."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Level:
    """A value that holds over the whole width."""

    name: str
    y: float


@dataclass(frozen=True)
class Plot:
    """Series and levels over one pair of axes.

    alt: what the plot shows, for who does not see it.
    x_label, y_label: what the axes are; unit: of y.
    x_ticks: position and label of every position that a point may have.
    log_y: whether y is drawn by its logarithm; every y is then positive.
    """

    alt: str
    x_label: str
    y_label: str
    unit: str
    x_ticks: Ticks
    series: Sequence[Series]
    levels: Sequence[Level] = ()
    log_y: bool = False


@dataclass(frozen=True)
class Picture:
    """A small image, its axes, and the bars that belong to it.

    png: a PNG file.
    ticks: of both axes, as fractions of width and height from bottom left.
    """

    title: str
    alt: str
    png: bytes
    ticks: Ticks
    bars: Bars


@dataclass(frozen=True)
class ColourScale:
    """What the colours of pictures mean.

    png: a PNG file whose columns are the colours in order.
    ticks: fractions of the width and their labels.
    """

    label: str
    png: bytes
    ticks: Ticks


@dataclass(frozen=True)
class Gallery:
    """Pictures on one colour scale, in the order in which they were taken."""

    pictures: Sequence[Picture]
    axis_label: str
    scale: ColourScale


Block: TypeAlias = Note | Table | Bars | Plot | Gallery


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: Sequence[Block]


def visible(text: str) -> str:
    """The text with everything that is not printable spelled out.

    Control characters move a terminal's cursor, and directional ones make a
    line read as another; both come out as escapes.
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
