"""What the operator sees of a session while it runs."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from probebench.app.drive import TurnSeen
from probebench.app.view import LineView, LiveView, cause_text
from probebench.kernel.budget import Budget
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Action, Cause, Fault, FaultKind, Rejection, Task


def seen(cause: Cause | None, *, task: Task | None = None, replayed: bool = False) -> TurnSeen:
    charge = {"requests": 1, "exposures": 1}
    return TurnSeen(3, cause, task, None, charge, b'{"peak":12}\n', replayed)


def glance(message: Json) -> str:
    return f"peak {message['peak']}"


def test_a_cause_is_told_in_a_word_or_two() -> None:
    assert cause_text(seen(Action("expose"))) == "expose"
    assert cause_text(seen(Rejection("not_json", "…"))) == "rejected: not_json"
    assert cause_text(seen(Fault(FaultKind.TIMEOUT))) == "fault: timeout"
    assert cause_text(seen(None, task=Task("t", "fit", {}))) == "computed fit"


def test_in_a_pipe_each_turn_is_one_line() -> None:
    lines: list[str] = []
    view = LineView(glance, lines.append)
    view.opened({})
    view.turn(seen(Action("expose")))
    view.turn(seen(Action("expose"), replayed=True))
    assert lines[1:] == ["turn 3: expose; peak 12", "turn 3 (replayed): expose; peak 12"]


def test_on_a_terminal_turn_budget_last_action_and_glance_are_drawn() -> None:
    stream = StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    with LiveView(glance, Budget({"requests": 24, "exposures": 6}), console) as view:
        view.opened({"exposures": 1})
        view.turn(seen(Action("expose")))
    drawn = stream.getvalue()
    for words in ("turn 3", "1 of 24", "2 of 6", "expose; peak 12"):
        assert words in drawn
