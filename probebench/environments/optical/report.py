"""How an optical session reads to the operator; it may say what a client must not hear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probebench.environments.optical.recorded import acquired, action_of, peak_e, vector_text
from probebench.environments.optical.sections import sections
from probebench.kernel.canonical import Json
from probebench.kernel.report import RecordedSession, RecordedTurn, Report, Reporter

COLUMNS = ("turn", "received", "command / nm OPD", "result", "peak / e-")


def report(session: RecordedSession) -> Report:
    """The outcome in sentences, the figures, and a row a turn."""
    return Report(
        headline=_headline(session),
        columns=COLUMNS,
        rows=list(_rows(session)),
        figures=[] if session.evaluator is None else _figures(session.evaluator),
    )


def glance(message: Json) -> str:
    """One public message in a few words."""
    if message is None:
        return ""
    if message["kind"] == "final":
        return _ending(message["outcome"])
    peak = f"last frame's peak {peak_e(message['observation']):.0f} e-"
    return f"{_result(message['last_result'])}, {peak}"


REPORTER = Reporter(report, glance, sections)


def _headline(session: RecordedSession) -> list[str]:
    if session.evaluator is None:
        return [f"The session is unfinished after {len(session.turns)} turns; it can be resumed."]
    outcome, evaluation = session.evaluator["outcome"], session.evaluator["evaluation"]
    how = (
        "The client submitted"
        if outcome["status"] == "submitted"
        else f"The episode failed ({outcome['cause']})"
    )
    before, after = evaluation["zero_command_wfe_nm_rms"], evaluation["residual_wfe_nm_rms"]
    sentence = (
        f"{how}: WFE {before:.2f} nm RMS under the zero command, {after:.2f} nm RMS at the end"
    )
    floor = evaluation["cramer_rao_floor_nm_rms"]
    if floor is None:
        return [
            f"{sentence}; the images taken set no Cramer-Rao floor ({evaluation['cramer_rao_floor_reason']})."
        ]
    return [f"{sentence}; the Cramer-Rao floor of the images taken is {floor:.2f} nm RMS."]


def _figures(evaluator: Json) -> Sequence[tuple[str, str]]:
    evaluation, spent = evaluator["evaluation"], evaluator["resources"]["spent"]
    return [
        ("Strehl ratio, exact", f"{evaluation['strehl']:.4f}"),
        ("Strehl ratio, Marechal", f"{evaluation['strehl_marechal']:.4f}"),
        ("best measured command's WFE", f"{evaluation['best_measured_wfe_nm_rms']:.2f} nm RMS"),
        (
            "photons on the detector",
            f"{sum(evaluation['realised_photons'])} of {spent['photons']} expected to enter",
        ),
    ]


def _rows(session: RecordedSession) -> Iterator[Sequence[str]]:
    first = session.first_message["observation"]
    yield ("0", "", vector_text(first["command_opd_nm"]), "initial image", f"{peak_e(first):.0f}")
    for turn in session.turns:
        message = turn.response["message"]
        yield (
            str(turn.turn),
            _received(turn),
            vector_text(action_of(turn).get("command_opd_nm", [])),
            turn.response["rejection"] or _outcome_of(message),
            f"{peak_e(message['observation']):.0f}" if acquired(message) else "",
        )


def _received(turn: RecordedTurn) -> str:
    if turn.fault is not None:
        return f"({turn.fault})"
    return str(action_of(turn).get("action", "(rejected)"))


def _outcome_of(message: Json) -> str:
    return (
        _ending(message["outcome"])
        if message["kind"] == "final"
        else _result(message["last_result"])
    )


def _ending(outcome: Json) -> str:
    return f"failed ({outcome['cause']})" if outcome["status"] == "failed" else "submitted"


def _result(result: Json) -> str:
    if result is None:
        return "initial image"
    if result["kind"] == "exposed":
        return f"exposure {result['exposure_index']}"
    if result["kind"] == "rejected":
        return f"rejected: {result['code']}"
    return _fit_result(result["fit"], ", saved" if result["cached"] else "")


def _fit_result(fit: Json, saved: str) -> str:
    if fit["status"] != "converged":
        return f"fit failed{saved}"
    others = len(fit["other_basins"])
    return f"fit{saved}" + (f", {others} other basin{'s'[: others > 1]}" if others else "")
