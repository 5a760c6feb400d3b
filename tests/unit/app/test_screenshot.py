"""The page in a browser: on a phone and on a desk, nothing runs out of the window."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from probebench.app.show import read_session
from probebench.environments.optical.display import frame_png
from tests.unit.app.shown import ATTACK, finished_session, page_of, play

PHONE, DESK = 360, 1200
HEIGHT = 6000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser on PATH: none of {', '.join(NAMES)}"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(finished_session(tmp_path_factory.mktemp("browser") / "first-look"))


def chromium(page: Path, *options: str) -> str:
    """Load a page; returns what the browser printed."""
    assert BROWSER is not None
    # No sandbox, since tests may run as root; the page is our own.
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    return subprocess.run(
        [BROWSER, *flags, profile, "--virtual-time-budget=5000", *options, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout


def framed(pages: Sequence[tuple[str, int]], script: str = "") -> str:
    """Pages side by side, each in a frame of its own width.

    A browser without a screen has a least width of its own; a frame has none.
    """
    frames = [
        f'<iframe srcdoc="{html.escape(page)}" style="border:0;width:{width}px;height:{HEIGHT}px;'
        'display:block"></iframe>'
        for page, width in pages
    ]
    return f'<!DOCTYPE html><body style="margin:0">{"".join(frames)}{script}'


MEASURE = """<script>onload = () => {
  const widths = [...document.querySelectorAll("iframe")].map((frame) =>
    Math.max(...[...frame.contentDocument.querySelectorAll("*")].map(
      (element) => element.getBoundingClientRect().right),
      frame.contentDocument.documentElement.scrollWidth));
  document.title = "widths " + widths.join(" ");
};</script>"""


def widths(folder: Path, pages: Sequence[tuple[str, int]]) -> list[float]:
    """How far to the right each page reaches in its frame, in CSS pixels."""
    target = folder / "measure.html"
    target.write_text(framed(pages, MEASURE), encoding="utf-8")
    found = re.search(r"<title>widths ([\d. ]+)</title>", chromium(target, "--dump-dom"))
    assert found is not None, "the browser did not run the measurement"
    return [float(width) for width in found[1].split()]


def test_the_page_fits_a_phone_and_a_desk(page: str, tmp_path: Path) -> None:
    phone, desk = widths(tmp_path, [(page, PHONE), (page, DESK)])
    assert phone <= PHONE
    assert desk <= DESK


def test_a_page_that_is_too_wide_is_found(page: str, tmp_path: Path) -> None:
    wide = page.replace("<main>", '<main><div style="width:500px">wide</div>')
    assert widths(tmp_path, [(wide, PHONE)])[0] > PHONE


def test_long_words_of_a_client_do_not_widen_the_page(tmp_path: Path) -> None:
    lines = tuple((lambda _message: b"x" * 9000 + ATTACK.encode() + b"\n") for _ in range(2))
    folder = play(tmp_path / ("a" * 200), lines, requests=2)
    assert widths(tmp_path, [(page_of(read_session(folder)), PHONE)])[0] <= PHONE


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_screenshot_shows_frames_bars_and_text(page: str, tmp_path: Path, width: int) -> None:
    target, shot = tmp_path / "shown.html", tmp_path / "shot.png"
    target.write_text(framed([(page, width)]), encoding="utf-8")
    chromium(target, f"--window-size={max(width, 600)},{HEIGHT}", f"--screenshot={shot}")
    with Image.open(shot) as image:
        colours = Counter(image.convert("RGB").crop((0, 0, width, HEIGHT)).get_flattened_data())
    assert colours[255, 255, 255] > width * HEIGHT / 4  # paper
    assert colours[0x1F, 0x5F, 0xAE] > 2000  # the bars' blue
    assert colours[0x1B, 0x1B, 0x22] > 500  # the ink of the text
    # Four frames, pixelated: no colour between those of the map.
    assert sum(colours[colour] for colour in magma()) > 4 * 200 * 200


def magma() -> set[tuple[int, ...]]:
    """The colours of frames."""
    with Image.open(BytesIO(frame_png(np.zeros((1, 1)), 1000))) as image:
        palette = image.getpalette() or []
    return set(zip(palette[::3], palette[1::3], palette[2::3], strict=True))
