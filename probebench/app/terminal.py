"""A session on a terminal, or in a pipe: the blocks of its page, drawn in characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import zip_longest

from rich.color import Color
from rich.console import Console, RenderableType
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from probebench.app.svg import table_of
from probebench.kernel.errors import ArtifactError
from probebench.kernel.page import Bar, Bars, Block, Gallery, Note, Plot, Section, Table, visible
from probebench.kernel.report import Report

BAR_WIDTH = 24
UPPER_HALF = "▀"


def print_session(report: Report, sections: Sequence[Section], console: Console) -> None:
    """The outcome, the turns and the figures, then every section that has something to draw."""
    print_report(report, console)
    for section in sections:
        drawn = [item for block in section.blocks for item in _drawn(block, console)]
        if drawn:
            console.print()
            console.print(Text(section.title, style="bold"))
            for item in drawn:
                console.print(item, highlight=False)


def print_report(report: Report, console: Console) -> None:
    """The outcome in sentences, then the turns, then the figures."""
    for sentence in report.headline:
        console.print(_text(sentence, console), highlight=False, soft_wrap=True)
    if report.rows:
        console.print(_table(Table(report.columns, report.rows), console))
    if report.figures:
        console.print(_grid(report.figures, console))


def _drawn(block: Block, console: Console) -> Iterator[RenderableType]:
    match block:
        case Note(text=text):
            yield _text(text, console)
        case Table():
            yield _table(block, console)
        case Plot():
            yield _table(Table(*table_of(block)), console)
        case Bars():
            yield _text(block.title, console)
            yield _bars(block, console)
        case Gallery():
            yield from _last_picture(block, console)


def _text(text: str, console: Console) -> Text:
    # What the terminal cannot write is spelled out, as what is not printable is.
    encoding = console.encoding
    return Text(visible(text).encode(encoding, "backslashreplace").decode(encoding))


def _table(table: Table, console: Console) -> RichTable:
    drawn = RichTable(box=None, header_style="bold", pad_edge=False)
    for name in table.columns:
        # A command that is broken over lines is hard to compare with the next.
        drawn.add_column(name, no_wrap="command" in name, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(_text(cell, console) for cell in row))
    return drawn


def _grid(pairs: Sequence[tuple[str, str]], console: Console) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    for pair in pairs:
        grid.add_row(*(_text(cell, console) for cell in pair))
    return grid


def _bars(bars: Bars, console: Console) -> RichTable:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right")
    for bar in bars.bars:
        cells = (bar.name, _bar(bar, signed=bars.signed), bar.text)
        grid.add_row(*(_text(cell, console) for cell in cells))
    return grid


def _bar(bar: Bar, *, signed: bool) -> str:
    if not signed:
        filled = round(BAR_WIDTH * min(max(bar.fraction, 0), 1))
        return "#" * filled + "." * (BAR_WIDTH - filled)
    half = BAR_WIDTH // 2
    filled = round(half * min(abs(bar.fraction), 1))
    side = "#" * filled + "." * (half - filled)
    empty = "." * half
    return f"{side[::-1]}|{empty}" if bar.fraction < 0 else f"{empty}|{side}"


# -- pictures ----------------------------------------------------------------------


def _last_picture(gallery: Gallery, console: Console) -> Iterator[RenderableType]:
    # Without colours there is nothing to see; the page has all the frames.
    colours = console.is_terminal and console.color_system and not console.options.ascii_only
    if not colours or not gallery.pictures:
        return
    picture = gallery.pictures[-1]
    yield _text(f"{picture.title}; colours: {gallery.scale.label}", console)
    yield half_blocks(picture.png)


def half_blocks(png: bytes) -> Text:
    """A PNG file in colours, two rows of pixels to a line.

    Raises ArtifactError for bytes that are no PNG file.
    """
    # Imported here so that `--help` does not pay for it.
    from PIL import Image

    try:
        with Image.open(BytesIO(png), formats=["PNG"]) as image:
            width, height, colours = image.width, image.height, image.convert("RGB").tobytes()
    except (OSError, ValueError, SyntaxError) as error:
        raise ArtifactError("png_base64", f"the frame's image cannot be read: {error}") from None
    rows = [colours[3 * width * row : 3 * width * (row + 1)] for row in range(height)]
    lines = [_line(upper, lower) for upper, lower in zip_longest(rows[::2], rows[1::2])]
    return Text("\n", no_wrap=True).join(lines)


def _line(upper: bytes, lower: bytes | None) -> Text:
    line = Text()
    for at in range(0, len(upper), 3):
        below = None if lower is None else Color.from_rgb(*lower[at : at + 3])
        line.append(UPPER_HALF, Style(color=Color.from_rgb(*upper[at : at + 3]), bgcolor=below))
    return line
