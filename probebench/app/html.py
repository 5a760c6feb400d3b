"""A session as one page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import chain

from probebench.app.markup import Element, document, node, png_uri
from probebench.app.svg import plot_figure
from probebench.kernel.canonical import Json
from probebench.kernel.page import (
    Bar,
    Bars,
    Block,
    ColourScale,
    Gallery,
    Note,
    Picture,
    Plot,
    Section,
    Table,
    Ticks,
)
from probebench.kernel.report import RecordedSession, Report

# Enforced by the browser, in case that markup ever came in after all.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def session_page(session: RecordedSession, report: Report, sections: Sequence[Section]) -> str:
    """The whole page, as text."""
    title = f"probebench session {session.folder_name}"
    turns = Section("Turns", [Table(report.columns, report.rows)])
    parts = [*sections, turns, _provenance(session)]
    body = node(
        "main",
        node("h1", f"Session {session.folder_name}"),
        *(node("p", sentence, class_="outcome") for sentence in report.headline),
        *([_definitions(report.figures)] if report.figures else []),
        *chain.from_iterable(map(_section, parts)),
        node("p", OPERATORS_EYES, class_="note"),
    )
    return document(node("html", _head(title), node("body", body), lang="en"))


OPERATORS_EYES = (
    "For the operator: this page says what a client of the same configuration must not see. "
    "It shows the records as they are and verifies nothing; `probebench verify` does."
)


def _head(title: str) -> Element:
    style = Element("style")  # the serialiser leaves its text as it is
    style.text = resources.files("probebench.app").joinpath("page.css").read_text("utf-8")
    return node(
        "head",
        node("meta", charset="utf-8"),
        node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        node("meta", name="color-scheme", content="light dark"),
        node("meta", http_equiv="Content-Security-Policy", content=POLICY),
        node("title", title),
        style,
    )


def _section(section: Section) -> Iterator[Element]:
    yield node("section", node("h2", section.title), *map(_block, section.blocks))


def _block(block: Block) -> Element:
    match block:
        case Note(text=text):
            return node("p", text, class_="note")
        case Table():
            return _table(block)
        case Bars():
            return _bars(block)
        case Plot():
            return plot_figure(block)
        case Gallery():
            return _gallery(block)


# -- blocks ------------------------------------------------------------------------


def _table(table: Table) -> Element:
    head = node("tr", *(node("th", name, scope="col") for name in table.columns))
    rows = [_row(table, row) for row in table.rows]
    return node("table", node("thead", head), node("tbody", *rows))


def _row(table: Table, row: Sequence[str]) -> Element:
    # A narrow screen stacks the cells, each beside the name of its column.
    cells = [
        node(
            "td",
            node("code" if name in table.verbatim else "span", text),
            data_name=name,
            class_="" if text else "empty",
        )
        for name, text in zip(table.columns, row, strict=True)
    ]
    return node("tr", *cells)


def _definitions(pairs: Iterable[tuple[str, str]]) -> Element:
    return node("dl", *(node("div", node("dt", name), node("dd", text)) for name, text in pairs))


def _bars(bars: Bars) -> Element:
    rows = [_bar(bar, signed=bars.signed) for bar in bars.bars]
    return node("figure", node("figcaption", bars.title), *rows, class_="bars")


def _bar(bar: Bar, *, signed: bool) -> Element:
    zero, unit = (50.0, 50.0) if signed else (0.0, 100.0)
    end = zero + unit * min(max(bar.fraction, -1 if signed else 0), 1)
    fill = [_span("fill", min(zero, end), max(zero, end))]
    if bar.spread is not None:
        reach = unit * bar.spread
        fill.append(_span("spread", max(end - reach, 0), min(end + reach, 100)))
    track = node("span", *fill, class_="track signed" if signed else "track", aria_hidden="true")
    return node(
        "div",
        node("span", bar.name, class_="name"),
        track,
        node("span", bar.text, class_="value"),
        class_="bar",
    )


def _span(kind: str, start: float, end: float) -> Element:
    return node("i", class_=kind, style=f"left:{start:.2f}%;width:{end - start:.2f}%")


# -- pictures ----------------------------------------------------------------------


def _gallery(gallery: Gallery) -> Element:
    pictures = [_picture(picture) for picture in gallery.pictures]
    return node(
        "div",
        _scale(gallery.scale),
        node("p", f"Axes: {gallery.axis_label}.", class_="note"),
        node("div", *pictures, class_="gallery"),
    )


def _picture(picture: Picture) -> Element:
    image = node("img", src=png_uri(picture.png), alt=picture.alt)
    framed = node(
        "div",
        _ticks(picture.ticks, "y", "bottom"),
        image,
        _ticks(picture.ticks, "x", "left"),
        class_="framed",
    )
    return node("article", node("h3", picture.title), framed, _bars(picture.bars), class_="picture")


def _scale(scale: ColourScale) -> Element:
    image = node("img", src=png_uri(scale.png), alt=f"Colour scale: {scale.label}")
    return node(
        "figure",
        node("figcaption", f"Colours: {scale.label}."),
        image,
        _ticks(scale.ticks, "x", "left"),
        class_="scale",
    )


def _ticks(ticks: Ticks, axis: str, side: str) -> Element:
    marks = [node("span", label, style=f"{side}:{100 * at:.2f}%") for at, label in ticks]
    return node("div", *marks, class_=f"ticks {axis}", aria_hidden="true")


# -- provenance ----------------------------------------------------------------------


def _provenance(session: RecordedSession) -> Section:
    config = session.study.config
    named = ("environment", "track", "name", "purpose", "protocol")
    rows = [
        ("folder", session.folder_name),
        ("head digest", session.head_sha256),
        *((name, str(config[name])) for name in named if name in config),
        *((f"runtime, {key}", _flat(value)) for key, value in session.study.runtime.items()),
        *((f"display, {key}", _flat(value)) for key, value in session.display_runtime.items()),
        ("source files frozen", str(len(session.study.source))),
    ]
    return Section("Provenance", [Table(("what", "value"), rows)])


def _flat(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
