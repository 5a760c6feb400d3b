"""A plot as an SVG element, drawn so that it can be read at a phone's width."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from probebench.app.markup import Element, node
from probebench.kernel.page import Plot, Series, Ticks

WIDTH, HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 26, 42
X_INSET = 14  # a marker at the end of the axis stays inside
X_LABELS = 12  # more would touch one another
RADIUS = 4.5


@dataclass(frozen=True)
class Frame:
    """The axes: from quantities to places in the drawing."""

    x: Callable[[float], float]
    y: Callable[[float], float]
    y_ticks: Ticks


def plot_figure(plot: Plot) -> Element:
    """The plot with its key."""
    frame = _frame(plot)
    drawing = node(
        "svg",
        *_axes(plot, frame),
        *_levels(plot, frame),
        *_series(plot, frame),
        role="img",
        aria_label=plot.alt,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="plot",
    )
    return node("figure", drawing, _key(plot), class_="plot")


def _frame(plot: Plot) -> Frame:
    values = [y for series in plot.series for _, y in series.points]
    values += [level.y for level in plot.levels]
    ticks = log_ticks(min(values), max(values)) if plot.log_y else linear_ticks(max(values))
    scale = math.log10 if plot.log_y else float
    low, high = scale(ticks[0][0]), scale(ticks[-1][0])
    first, last = plot.x_ticks[0][0], plot.x_ticks[-1][0]
    left, right = LEFT + X_INSET, WIDTH - RIGHT - X_INSET
    return Frame(
        x=lambda x: left + (right - left) * (x - first) / ((last - first) or 1),
        y=lambda y: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (scale(y) - low) / (high - low),
        y_ticks=ticks,
    )


def linear_ticks(high: float) -> Ticks:
    """Round values from 0 to one that reaches ``high``, four to eight of them."""
    high = high if high > 0 else 1.0
    decade = 10.0 ** math.floor(math.log10(high / 4))
    step = max(decade * factor for factor in (1, 2, 5) if decade * factor <= high / 4)
    return [(i * step, f"{i * step:g}") for i in range(math.ceil(high / step - 1e-9) + 1)]


def log_ticks(low: float, high: float) -> Ticks:
    """Round values from one below ``low`` to one above ``high``.

    1, 2 and 5 of each decade; over more than four decades, 1 alone.
    """
    factors = (1, 2, 5) if high <= 1e4 * low else (1,)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    marks = [float(f"{factor}e{power}") for power in powers for factor in factors]
    first = max(mark for mark in marks if mark <= low)
    last = min(mark for mark in marks if mark >= high and mark > first)
    return [(mark, f"{mark:g}") for mark in marks if first <= mark <= last]


# -- what is drawn -----------------------------------------------------------------


def _axes(plot: Plot, frame: Frame) -> Iterator[Element]:
    yield _text(plot.y_label + ", log scale" * plot.log_y, LEFT, 14, "start")
    yield _text(plot.x_label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "middle")
    for value, label in frame.y_ticks:
        yield _line(LEFT, frame.y(value), WIDTH - RIGHT, frame.y(value), "grid")
        yield _text(label, LEFT - 6, frame.y(value) + 4, "end")
    for x, label in _thinned(plot.x_ticks):
        yield _text(label, frame.x(x), HEIGHT - BOTTOM + 18, "middle")


def _thinned(ticks: Ticks) -> Ticks:
    # The last one may be a word of its own, so it is kept.
    stride = math.ceil(len(ticks) / X_LABELS)
    return ticks if stride == 1 else [*ticks[:-stride:stride], ticks[-1]]


def _levels(plot: Plot, frame: Frame) -> Iterator[Element]:
    for index, level in enumerate(plot.levels):
        yield _line(LEFT, frame.y(level.y), WIDTH - RIGHT, frame.y(level.y), f"level level-{index}")


def _series(plot: Plot, frame: Frame) -> Iterator[Element]:
    for index, series in enumerate(plot.series):
        places = [(frame.x(x), frame.y(y)) for x, y in series.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield node("polyline", points=path, class_=f"path series-{index}")
        yield from (_marker(index, x, y) for x, y in places)


def _marker(index: int, x: float, y: float) -> Element:
    # Shapes differ too: colour alone does not tell a series.
    if index == 0:
        return node("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{RADIUS}", class_="mark series-0")
    reach = RADIUS * 1.5
    corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return node("polygon", points=points, class_=f"mark series-{index}")


def _key(plot: Plot) -> Element:
    entries = [
        *(_entry(_marker(i, 14, 6), _named(series, plot)) for i, series in enumerate(plot.series)),
        *(
            _entry(_line(0, 6, 28, 6, f"level level-{i}"), f"{level.name}: {_value(level.y, plot)}")
            for i, level in enumerate(plot.levels)
        ),
    ]
    return node("ul", *entries, class_="key")


def _named(series: Series, plot: Plot) -> str:
    alone = len(series.points) == 1
    return f"{series.name}: {_value(series.points[0][1], plot)}" if alone else series.name


def _value(y: float, plot: Plot) -> str:
    return f"{y:.2f} {plot.unit}"


def _entry(shape: Element, text: str) -> Element:
    return node("li", _swatch(shape), node("span", text))


def _swatch(shape: Element) -> Element:
    return node("svg", shape, viewBox="0 -2 28 16", class_="swatch", aria_hidden="true")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return node("line", class_=kind, **{key: f"{value:.1f}" for key, value in ends.items()})


def _text(text: str, x: float, y: float, anchor: str) -> Element:
    return node("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def table_of(plot: Plot) -> tuple[Sequence[str], list[Sequence[str]]]:
    """The plot's points as columns and rows of text, for who reads numbers."""
    labels = dict(plot.x_ticks)
    points = [
        (labels[x], series.name, f"{y:.2f}") for series in plot.series for x, y in series.points
    ]
    levels = [("", level.name, f"{level.y:.2f}") for level in plot.levels]
    return (plot.x_label, "of", plot.y_label), [*points, *levels]
