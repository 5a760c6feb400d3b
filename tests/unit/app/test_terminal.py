"""A session in characters: at 80 columns, with and without colours."""

from __future__ import annotations

from io import BytesIO, StringIO, TextIOWrapper
from typing import Literal

import pytest
from PIL import Image
from rich.console import Console

from probebench.app.show import report_of, sections_of
from probebench.app.terminal import half_blocks, print_report, print_session
from probebench.kernel.errors import ArtifactError
from probebench.kernel.page import Bar, Bars, Section
from probebench.kernel.report import RecordedSession, Report
from tests.rigs import constant_rig
from tests.unit.app.shown import finished_session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> RecordedSession:
    return finished_session(tmp_path_factory.mktemp("terminal") / "first-look")


def drawn(session: RecordedSession, colours: Literal["truecolor"] | None = None) -> str:
    stream = StringIO()
    console = Console(
        file=stream, width=80, force_terminal=colours is not None, color_system=colours
    )
    rig = constant_rig()
    print_session(report_of(rig, session), sections_of(rig, session), console)
    return stream.getvalue()


def png(colours: list[tuple[int, int, int]], size: tuple[int, int]) -> bytes:
    image = Image.new("RGB", size)
    for index, colour in enumerate(colours):
        image.putpixel((index % size[0], index // size[0]), colour)
    with BytesIO() as file:
        image.save(file, format="PNG")
        return file.getvalue()


def test_a_report_is_printed_whole_and_literally() -> None:
    stream = StringIO()
    report = Report(["It [bold]ended[/bold]."], ("turn", "what"), [("1", "[x]")], [("WFE", "3 nm")])
    print_report(report, Console(file=stream, width=60))
    for words in ("It [bold]ended[/bold].", "turn", "[x]", "WFE", "3 nm"):
        assert words in stream.getvalue()


def test_every_command_stands_on_one_line_of_80_columns(session: RecordedSession) -> None:
    lines = drawn(session).splitlines()
    for command in ("80 0 0 0 0 0", "0 0 20 -15.5 0 30", "0 -120 0 0 12 200"):
        assert any(command in line for line in lines)
    # The first line is a sentence, which a terminal may wrap as it likes.
    assert max(map(len, lines[1:])) <= 80


def test_without_colours_everything_but_the_frame_is_drawn(session: RecordedSession) -> None:
    text = drawn(session)
    for words in ("Cramer-Rao floor", "zero command", "4 of 6", "±", "invalid_utf8"):
        assert words in text
    assert "▀" not in text
    assert "\x1b" not in text


def test_on_a_colour_terminal_the_last_frame_is_drawn_in_half_blocks(
    session: RecordedSession,
) -> None:
    pixels = session.first_message["instrument"]["columns"]
    assert drawn(session, "truecolor").count("▀") == pixels * pixels // 2


def test_what_a_client_sent_moves_no_cursor(session: RecordedSession) -> None:
    # The column folds it, so only a short piece of it surely stands on one line.
    assert r"\u202e" in drawn(session)
    assert not set(drawn(session)) & {"\x1b", "\u202e", "\x00"}


def test_what_the_terminal_cannot_write_is_spelled_out(session: RecordedSession) -> None:
    raw = BytesIO()
    rig = constant_rig()
    with TextIOWrapper(raw, encoding="ascii") as stream:
        console = Console(file=stream, width=80, force_terminal=True, color_system="truecolor")
        print_session(report_of(rig, session), sections_of(rig, session), console)
        stream.flush()
        assert rb"\xb1" in raw.getvalue()


def test_an_upper_pixel_is_the_ink_and_a_lower_one_the_ground() -> None:
    red, green, blue = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    text = half_blocks(png([red, green, blue], (1, 3)))
    assert text.plain == "▀\n▀"
    styles = [str(span.style) for line in text.split() for span in line.spans]
    assert styles == ["#ff0000 on #00ff00", "#0000ff"]


def test_an_image_that_is_none_is_named() -> None:
    with pytest.raises(ArtifactError, match="png_base64: the frame's image cannot be read"):
        half_blocks(b"GIF89a")


@pytest.mark.parametrize(
    ("fraction", "signed", "bar"),
    [
        (0.5, False, "############............"),
        (7.0, False, "########################"),
        (0.25, True, "............|###........."),
        (-0.25, True, ".........###|............"),
    ],
)
def test_a_bar_is_as_long_as_its_share(fraction: float, bar: str, *, signed: bool) -> None:
    stream = StringIO()
    bars = Bars("share", [Bar("x", fraction, "1 nm")], signed=signed)
    print_session(Report([]), [Section("s", [bars])], Console(file=stream, width=80))
    assert f"x  {bar}  1 nm" in stream.getvalue()
