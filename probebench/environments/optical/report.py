"""How an optical session reads to the operator; it may say what a client must not hear."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from probebench.kernel.canonical import Json
from probebench.kernel.report import RecordedSession, RecordedTurn, Report, Reporter

COLUMNS = ("turn", "received", "command / nm OPD", "result", "peak / e-", "spent (req, exp, est)")


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
        outcome = message["outcome"]
        failed = outcome["status"] == "failed"
        return f"failed ({outcome['cause']})" if failed else "submitted"
    return f"{_result(message['last_result'])}, last frame's peak {_peak(message['observation']):.0f} e-"


REPORTER = Reporter(report, glance)


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
    evaluation = evaluator["evaluation"]
    spent, limits = evaluator["resources"]["spent"], evaluator["resources"]["limits"]
    figures = [
        ("Strehl ratio, exact", f"{evaluation['strehl']:.4f}"),
        ("Strehl ratio, Marechal", f"{evaluation['strehl_marechal']:.4f}"),
        ("best measured command's WFE", f"{evaluation['best_measured_wfe_nm_rms']:.2f} nm RMS"),
        (
            "photons on the detector",
            f"{sum(evaluation['realised_photons'])} of {spent['photons']} expected to enter",
        ),
    ]
    return [*figures, *((name, f"{spent[name]} of {limits[name]}") for name in limits)]


def _rows(session: RecordedSession) -> Iterator[Sequence[str]]:
    first = session.first_message
    yield (
        "0",
        "",
        _vector(first["observation"]["command_opd_nm"]),
        "initial image",
        _peak_text(first),
        _spent(first),
    )
    for turn in session.turns:
        message = turn.response["message"]
        yield (
            str(turn.turn),
            _received(turn),
            _command(turn),
            turn.response["rejection"] or _outcome_of(message),
            _peak_text(message) if _acquired(message) else "",
            _spent(message),
        )


def _received(turn: RecordedTurn) -> str:
    if turn.fault is not None:
        return f"({turn.fault})"
    action = _parsed(turn).get("action")
    return action if isinstance(action, str) and not turn.response["rejection"] else "(rejected)"


def _command(turn: RecordedTurn) -> str:
    if turn.fault is not None or turn.response["rejection"]:
        return ""
    command = _parsed(turn).get("command_opd_nm")
    return "" if command is None else _vector(command)


def _parsed(turn: RecordedTurn) -> dict[str, Json]:
    try:
        value = json.loads((turn.received or b"").decode(errors="replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _acquired(message: Json) -> bool:
    result = message.get("last_result")
    return result is not None and result["kind"] == "exposed"


def _outcome_of(message: Json) -> str:
    return glance(message) if message["kind"] == "final" else _result(message["last_result"])


def _result(result: Json) -> str:
    if result is None:
        return "initial image"
    if result["kind"] == "exposed":
        return f"exposure {result['exposure_index']}"
    if result["kind"] == "rejected":
        return f"rejected: {result['code']}"
    fit = result["fit"]
    saved = ", saved fit" if result["cached"] else ""
    if fit["status"] != "converged":
        return f"fit failed{saved}: {fit['failure']}"
    others = f", {len(fit['other_basins'])} other basins" if fit["other_basins"] else ""
    return f"estimate {_vector(fit['estimate_opd_nm'])}{others}{saved}"


def _vector(values: Sequence[float]) -> str:
    return " ".join(f"{value:.1f}" for value in values)


def _peak(observation: Json) -> float:
    return float(max(map(max, observation["electrons"])))


def _peak_text(message: Json) -> str:
    return f"{_peak(message['observation']):.0f}"


def _spent(message: Json) -> str:
    spent = message["resources"]["spent"]
    return f"{spent['requests']}, {spent['exposures']}, {spent['estimates']}"
