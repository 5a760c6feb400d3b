"""How a recorded session reads: outcome, turns and figures are those of its records."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probebench.app.session import run_session
from probebench.app.show import read_session
from probebench.environments.optical.report import glance, report
from probebench.kernel.canonical import encode
from probebench.kernel.episode import Ask
from probebench.kernel.report import RecordedSession, Report
from tests.environments.optical.scenes import PROBE_OPD_NM, ZERO_OPD_NM, document
from tests.rigs import KilledError, RepliesInProcess, constant_rig

Message = dict[str, Any]
Line = Callable[[Message], bytes]


def small() -> dict[str, Any]:
    """A configuration whose session takes a second, with room for two exposures more."""
    written = document()
    written["pupil"]["samples"] = 32
    written["detector"]["pixels"] = 20
    written["budget"] = {"exposures": 3, "estimates": 2, "requests": 5}
    return written


def says(name: str, **fields: Any) -> Line:
    return lambda message: encode(
        {
            "protocol": message["protocol"],
            "request_id": message["request_id"],
            "action": name,
            **fields,
        }
    )


def submits_the_suggestion(message: Message) -> bytes:
    suggested = message["last_result"]["fit"]["suggested_command_opd_nm"]
    return says("submit", command_opd_nm=suggested)(message)


EXPOSES = says("expose", command_opd_nm=PROBE_OPD_NM)
WHOLE = [
    EXPOSES,
    says("expose", command_opd_nm=[1.0]),
    says("estimate"),
    submits_the_suggestion,
]


def played(folder: Path, lines: list[Line]) -> RecordedSession:
    """A session of these lines; killed where they end before it does."""

    def reply(_ask: Ask, message: Message) -> bytes:
        if len(clients.messages) > len(lines):
            raise KilledError
        return lines[len(clients.messages) - 1](message)

    clients = RepliesInProcess(reply)
    with suppress(KilledError):
        run_session(constant_rig(), folder, small(), clients)
    return read_session(folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RecordedSession:
    return played(tmp_path_factory.mktemp("report") / "finished", WHOLE)


def rows(made: Report) -> list[dict[str, str]]:
    """Rows by the names of their columns."""
    return [dict(zip(made.columns, row, strict=True)) for row in made.rows]


def test_the_headline_tells_the_outcome_with_both_errors_and_the_floor(
    finished: RecordedSession,
) -> None:
    evaluation = finished.evaluator["evaluation"]
    (sentence,) = report(finished).headline
    assert sentence.startswith("The client submitted")
    for name in ("zero_command_wfe_nm_rms", "residual_wfe_nm_rms", "cramer_rao_floor_nm_rms"):
        assert f"{evaluation[name]:.2f} nm RMS" in sentence


def test_a_row_a_turn_and_one_for_the_initial_image(finished: RecordedSession) -> None:
    told = rows(report(finished))
    assert [row["turn"] for row in told] == ["0", "1", "2", "3", "4"]
    assert [row["received"] for row in told] == ["", "expose", "(rejected)", "estimate", "submit"]
    results = [row["result"] for row in told]
    assert results[:2] == ["initial image", "exposure 1"]
    assert "wrong_length" in results[2]
    assert results[4] == "submitted"


def test_a_command_stands_beside_its_turn_and_a_rejected_one_does_not(
    finished: RecordedSession,
) -> None:
    commands = [row["command / nm OPD"] for row in rows(report(finished))]
    assert [float(value) for value in commands[0].split()] == ZERO_OPD_NM
    assert [float(value) for value in commands[1].split()] == PROBE_OPD_NM
    assert commands[2] == commands[3] == ""
    submitted = json.loads(finished.turns[3].received or b"")["command_opd_nm"]
    assert [float(value) for value in commands[4].split()] == pytest.approx(submitted, abs=0.51)


def test_the_peak_stands_where_an_image_was_acquired(finished: RecordedSession) -> None:
    peaks = [row["peak / e-"] for row in rows(report(finished))]
    messages = [finished.first_message, finished.turns[0].response["message"]]
    expected = [max(map(max, message["observation"]["electrons"])) for message in messages]
    assert peaks == [*(f"{peak:.0f}" for peak in expected), "", "", ""]


def test_figures_are_those_of_the_evaluation(finished: RecordedSession) -> None:
    evaluation = finished.evaluator["evaluation"]
    figures = dict(report(finished).figures)
    assert figures["Strehl ratio, exact"] == f"{evaluation['strehl']:.4f}"
    assert figures["Strehl ratio, Marechal"] == f"{evaluation['strehl_marechal']:.4f}"
    best = evaluation["best_measured_wfe_nm_rms"]
    assert figures["best measured command's WFE"] == f"{best:.2f} nm RMS"
    photons = sum(evaluation["realised_photons"])
    assert figures["photons on the detector"] == f"{photons} of 60000 expected to enter"


def test_an_unfinished_session_says_so_and_has_no_figures(tmp_path: Path) -> None:
    made = report(played(tmp_path / "unfinished", WHOLE[:2]))
    (sentence,) = made.headline
    assert sentence == "The session is unfinished after 2 turns; it can be resumed."
    assert list(made.figures) == []
    assert len(made.rows) == 3


def test_a_failed_episode_says_why(tmp_path: Path) -> None:
    failed = played(tmp_path / "failed", [says("nothing")] * 5)
    (sentence,) = report(failed).headline
    assert sentence.startswith("The episode failed (request_allowance)")
    assert rows(report(failed))[-1]["received"] == "(rejected)"


def test_images_without_a_floor_say_why(finished: RecordedSession) -> None:
    evaluation = finished.evaluator["evaluation"] | {
        "cramer_rao_floor_nm_rms": None,
        "cramer_rao_floor_reason": "the images leave a combination of the modes unmeasured",
    }
    without = replace(finished, evaluator=finished.evaluator | {"evaluation": evaluation})
    (sentence,) = report(without).headline
    assert "set no Cramer-Rao floor (the images leave a combination" in sentence


def test_a_glance_tells_the_last_result_and_the_peak(finished: RecordedSession) -> None:
    assert glance(None) == ""
    messages = [finished.first_message, *(t.response["message"] for t in finished.turns)]
    told = [glance(message) for message in messages]
    assert told[0].startswith("initial image, last frame's peak ")
    assert told[1].startswith("exposure 1, last frame's peak ")
    assert "wrong_length" in told[2]
    assert told[4] == "submitted"


def test_no_glance_tells_how_good_the_correction_is(finished: RecordedSession) -> None:
    # The live view stands on standard error, which a client may read.
    evaluation = finished.evaluator["evaluation"]
    for turn in finished.turns:
        told = glance(turn.response["message"])
        assert "WFE" not in told
        assert f"{evaluation['residual_wfe_nm_rms']:.2f}" not in told
