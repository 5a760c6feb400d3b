"""The page of a session: what is on it, and what a client cannot put there."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from probebench.app.show import read_session
from probebench.kernel.report import RecordedSession
from tests.unit.app.shown import (
    ATTACK,
    FINISHED,
    PROBES_OPD_NM,
    Page,
    attacks,
    finished_session,
    page_of,
    play,
    with_fit,
)

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "article"),
    *("h1", "h2", "h3", "p", "div", "span", "i", "ul", "li", "dl", "dt", "dd", "code"),
    *("figure", "figcaption", "img", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "text", "line", "polyline", "polygon", "circle"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> RecordedSession:
    return finished_session(tmp_path_factory.mktemp("page") / "first-look")


@pytest.fixture(scope="module")
def page(session: RecordedSession) -> Page:
    return Page(page_of(session))


# -- what is on it -----------------------------------------------------------------


def test_the_page_begins_with_the_outcome_in_a_sentence(
    session: RecordedSession, page: Page
) -> None:
    wfe = session.evaluator["evaluation"]["residual_wfe_nm_rms"]
    words = page.words.split("Wavefront error")[0]
    assert "The client submitted" in words
    assert f"{wfe:.2f} nm RMS at the end" in words


def test_every_frame_is_the_recorded_image_with_a_text_beside_it(
    session: RecordedSession, page: Page
) -> None:
    messages = [session.first_message, *(t.response["message"] for t in session.turns)]
    recorded = {m["observation"]["png_base64"] for m in messages if "observation" in m}
    images = page.all("img")
    shown = {(image["src"] or "").partition("base64,")[2] for image in images}
    assert len(recorded) == 1 + len(PROBES_OPD_NM)
    assert recorded <= shown
    assert all(image["alt"] for image in images)
    assert any("0 -120 0 0 12 200 nm OPD" in str(image["alt"]) for image in images)


def test_the_colour_scale_is_labelled_in_electrons_where_log1p_puts_them(
    session: RecordedSession, page: Page
) -> None:
    photons = session.first_message["instrument"]["photons_per_exposure"]
    at = 100 * math.log1p(100) / math.log1p(photons)
    assert f"left:{at:.2f}%" in [span.get("style") for span in page.all("span")]
    assert "electrons per pixel" in page.words
    assert f"\n{photons:,}\n" in page.words


def test_commands_are_bars_by_mode_from_the_middle_to_their_side(page: Page) -> None:
    for name in ("defocus", "oblique astigmatism", "vertical trefoil"):
        assert f"\n{name}\n" in page.words
    fills = [element["style"] for element in page.all("i", "fill")]
    assert "left:50.00%;width:20.00%" in fills  # 80 of 200 nm
    assert f"left:{50 - 50 * 120.5 / 200:.2f}%;width:{50 * 120.5 / 200:.2f}%" in fills


def test_the_wavefront_error_has_a_point_for_each_command_and_a_line_for_each_level(
    session: RecordedSession, page: Page
) -> None:
    evaluation = session.evaluator["evaluation"]
    (plot,) = page.all("svg", "plot")
    assert plot["role"] == "img"
    assert "4 measured commands" in str(plot["aria-label"])
    assert len(page.all("circle", "mark")) == 4 + 1  # and one in the key
    assert len(page.all("line", "level")) == 2 * 3
    for name in ("zero_command_wfe_nm_rms", "cramer_rao_floor_nm_rms", "best_measured_wfe_nm_rms"):
        assert f": {evaluation[name]:.2f} nm RMS" in page.words


def test_a_session_without_a_floor_says_why(session: RecordedSession) -> None:
    evaluation = session.evaluator["evaluation"] | {
        "cramer_rao_floor_nm_rms": None,
        "cramer_rao_floor_reason": "the images leave a combination unmeasured",
    }
    changed = replace(session, evaluator=session.evaluator | {"evaluation": evaluation})
    page = Page(page_of(changed))
    assert len(page.all("line", "level")) == 2 * 2
    assert "no Cramer-Rao floor: the images leave a combination unmeasured." in page.words


def test_fits_stand_with_one_sigma_of_their_covariance(
    session: RecordedSession, page: Page
) -> None:
    result = session.turns[5].response["message"]["last_result"]
    fit = result["fit"]
    for mode, value in enumerate(fit["estimate_opd_nm"]):
        sigma = math.sqrt(fit["covariance_nm2"][mode][mode])
        assert f"\n{value:.2f} ± {sigma:.2f}\n" in page.words
    assert len(page.all("i", "spread")) == 6
    assert "Turn 7: the saved fit of the same images, shown again." in page.words


def test_other_basins_are_drawn_and_ties_are_called_ties(session: RecordedSession) -> None:
    basins = [
        {
            "opd_nm": [-7.5, 1.0, 2.0, 3.0, 4.0, 321.0],
            "log_likelihood_distance": distance,
            "tie": distance == 0,
            "start_indices": [2],
        }
        for distance in (0.0, 4.25)
    ]
    words = Page(page_of(with_fit(session, other_basins=basins))).words
    assert "another basin, not distinguished by the images" in words
    assert "another basin, 4.25 below in log-likelihood" in words
    assert "scale to ±321" in words
    assert "No other basin" not in words


def test_a_failed_fit_names_its_reason_and_the_fallback(session: RecordedSession) -> None:
    failure = "no start converged within its iterations and the coefficient bound"
    changed = with_fit(session, status="numerical_failure", failure=failure)
    words = Page(page_of(changed)).words
    assert f"the fit failed ({failure})" in words
    assert "the sharpest image" in words


def test_the_budget_is_drawn_to_its_limits(page: Page) -> None:
    assert "\n4 of 6\n" in page.words
    assert "\n8 of 12\n" in page.words
    assert f"left:0.00%;width:{100 * 8 / 12:.2f}%" in [i["style"] for i in page.all("i", "fill")]


def test_provenance_names_folder_head_track_and_versions(
    session: RecordedSession, page: Page
) -> None:
    assert session.head_sha256 == session.evaluator["head_sha256"]
    numpy = session.study.runtime["versions"]["numpy"]
    for words in ("first-look", session.head_sha256, "tool_assisted", f"numpy {numpy}"):
        assert words in page.words


# -- sessions that did not end well ---------------------------------------------------


def test_an_unfinished_session_has_no_wavefront_error_and_says_so(tmp_path: Path) -> None:
    session = read_session(play(tmp_path / "cut", FINISHED[:4]))
    page = Page(page_of(session))
    assert "unfinished after 4 turns" in page.words
    assert "has not been evaluated" in page.words
    assert page.all("svg") == []
    assert session.head_sha256 in page.words


def test_a_failed_episode_names_its_cause_and_the_line_that_ended_it(tmp_path: Path) -> None:
    session = read_session(play(tmp_path / "failed", (attacks, attacks), requests=2))
    words = Page(page_of(session)).words
    assert "The episode failed (request_allowance)" in words
    assert "it ended the episode" in words


# -- what a client cannot put there ----------------------------------------------------


def test_what_a_client_sent_stays_text(session: RecordedSession, page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= TAGS
    names = {name for _, attributes in page.elements for name in attributes}
    assert [name for name in names if name.startswith("on")] == []
    assert page.comments == []
    # It is there to be read, with what cannot be printed spelled out.
    assert "<script>alert(1)</script>" in page.words
    assert r"\x1b[31m \u202e \x00" in page.words
    assert not set(page_of(session)) & {"\x1b", "\u202e", "\x00"}


def test_a_hostile_folder_stays_text_wherever_its_words_are_drawn(
    session: RecordedSession,
) -> None:
    evaluator = session.evaluator | {"outcome": {"status": "failed", "cause": ATTACK}}
    config = session.study.config | {"name": ATTACK}
    modes = [{"name": ATTACK}] * 6
    instrument = session.first_message["instrument"] | {"modes": modes}
    hostile = with_fit(
        replace(
            session,
            folder_name=ATTACK,
            evaluator=evaluator,
            study=replace(session.study, config=config),
            first_message=session.first_message | {"instrument": instrument},
        ),
        status="numerical_failure",
        failure=ATTACK,
    )
    page = Page(page_of(hostile))
    assert {tag for tag, _ in page.elements} <= TAGS
    assert page.all("script") == []


def test_the_page_needs_nothing_else(session: RecordedSession, page: Page) -> None:
    addresses = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"src", "href", "xlink:href", "action", "data", "srcset"}
    ]
    assert addresses
    assert all(str(value).startswith("data:image/png;base64,") for value in addresses)
    style = page_of(session).partition("<style>")[2].partition("</style>")[0]
    assert re.findall(r"@import|url\(|https?:", style) == []
    assert page.all("script") == page.all("link") == []


def test_a_browser_is_told_to_load_and_run_nothing(page: Page) -> None:
    (policy,) = [m["content"] for m in page.all("meta") if "http-equiv" in m]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert "width=device-width, initial-scale=1" in [m.get("content") for m in page.all("meta")]


# -- colours ----------------------------------------------------------------------------


def _palettes() -> list[dict[str, str]]:
    style = resources.files("probebench.app").joinpath("page.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in blocks]


def _contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""

    def luminance(colour: str) -> float:
        shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((luminance(first), luminance(second)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", _palettes(), ids=("light", "dark", "print"))
def test_text_and_lines_stand_out_from_the_paper(palette: dict[str, str]) -> None:
    for name in ("ink", "soft", "blue", "red", "green", "violet"):
        assert _contrast(palette[name], palette["paper"]) >= 4.5, name
    assert _contrast(palette["blue"], palette["track"]) >= 3
