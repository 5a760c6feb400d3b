"""docs/protocol.md says what every input does: its table is run, its lists are compared."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from probebench.app import clients
from probebench.kernel.framing import MAX_LINE_BYTES
from probebench.wire import optical as wire
from tests.environments.optical.protocol_cases import CASES, HALF
from tests.environments.optical.protocol_page import COUNTERS, PAGE, Row, input_rows, table
from tests.environments.optical.protocol_session import (
    LATER_OPD_NM,
    PHOTONS,
    Case,
    Message,
    Played,
    exposes,
    play_case,
    play_without,
)

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
ROWS = input_rows(TEXT)
REJECTIONS = [row for row in ROWS if row.is_rejection]
AMOUNTS = {"0": 0, "+1": 1, "+N": PHOTONS}
FAILING_CAUSES = {"oversize", "timeout", "eof", "request_allowance"}

PlayRow = typing.Callable[[str], Played]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayRow]:
    """The session of a row, played once."""
    with pytest.MonkeyPatch.context() as patched:
        # Clients that do not read would hold up the end of each session.
        patched.setattr(clients, "FAREWELL_DEADLINE_S", 0.5)
        yield cache(lambda row: play_case(CASES[row], tmp_path_factory.mktemp("row") / "session"))


@pytest.fixture(scope="module")
def play_plain(tmp_path_factory: pytest.TempPathFactory) -> typing.Callable[[Case], Played]:
    """A row's session without the row's line; rows that begin alike share it."""
    played: dict[object, Played] = {}

    def plain(case: Case) -> Played:
        key = (case.before, tuple(sorted(case.config.items())))
        if key not in played:
            played[key] = play_without(case, tmp_path_factory.mktemp("plain") / "session")
        return played[key]

    return plain


# -- the table --------------------------------------------------------------------


def test_every_row_has_exactly_one_case() -> None:
    assert Counter(row.input for row in ROWS) == Counter(dict.fromkeys(CASES, 1))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.input)
def test_an_input_does_what_its_row_says(row: Row, play: PlayRow) -> None:
    played, turn = play(row.input), CASES[row.input].input_turn
    assert _outcome(played, turn) == row.outcome
    assert _added(played, turn) == {name: AMOUNTS[cell] for name, cell in row.counters.items()}
    assert played.outcome.evaluator["resources"]["spent"] == _spent(played.messages[-1])


def _outcome(played: Played, turn: int) -> str:
    if turn > len(played.responses):
        return "ignored"
    message = played.messages[turn]
    if message["kind"] == "final":
        return f"ends: `{message['outcome']['cause']}`"
    result = message["last_result"]
    return f"rejected: `{result['code']}`" if result["kind"] == "rejected" else "accepted"


def _added(played: Played, turn: int) -> dict[str, int]:
    before, after = played.messages[turn - 1 :][:1], played.messages[: turn + 1][-1]
    return {name: _spent(after)[name] - _spent(before[0])[name] for name in COUNTERS}


def _spent(message: Message) -> dict[str, int]:
    spent: dict[str, int] = message["resources"]["spent"]
    return spent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.input)
def test_the_record_of_a_turn_charges_what_the_row_says(row: Row, play: PlayRow) -> None:
    played, turn = play(row.input), CASES[row.input].input_turn
    charged = Counter[str]()
    for response in played.responses[turn - 1 : turn]:
        charged.update(response["charge"])
    assert dict(charged) == {
        name: AMOUNTS[cell] for name, cell in row.counters.items() if AMOUNTS[cell]
    }


# -- rejections -------------------------------------------------------------------


@pytest.mark.parametrize("row", REJECTIONS, ids=lambda row: row.input)
def test_a_rejection_changes_the_request_count_and_the_last_result_alone(
    row: Row, play: PlayRow
) -> None:
    played, turn = play(row.input), CASES[row.input].input_turn
    before, after = (_without_changes(played.messages[turn + shift]) for shift in (-1, 0))
    assert before == after
    assert played.messages[turn]["last_result"].keys() == {"kind", "code", "message"}


def _without_changes(message: Message) -> Message:
    resources = message["resources"]
    spent = {name: value for name, value in resources["spent"].items() if name != "requests"}
    changing = {"previous_record_sha256", "turn", "last_result"}
    kept = {key: value for key, value in message.items() if key not in changing}
    return {**kept, "resources": {**resources, "spent": spent}}


@pytest.mark.parametrize(
    "row",
    [row for row in REJECTIONS if CASES[row.input].program is None],
    ids=lambda row: row.input,
)
def test_a_rejection_leaves_what_follows_as_it_would_have_been(
    row: Row, play: PlayRow, play_plain: typing.Callable[[Case], Played]
) -> None:
    with_line, without_line = play(row.input), play_plain(CASES[row.input])
    assert with_line.outcome.evaluator["evaluation"] == without_line.outcome.evaluator["evaluation"]
    assert (
        with_line.messages[-1]["last_acquired_observation"]
        == without_line.messages[-1]["last_acquired_observation"]
    )


def test_nearly_all_rejections_are_followed_by_another_image(play: PlayRow) -> None:
    """Or the test above would compare nothing of the detector."""
    not_followed = [
        row.input
        for row in REJECTIONS
        if CASES[row.input].program is None
        and play(row.input).messages[-1]["last_acquired_observation"]["command_opd_nm"]
        != LATER_OPD_NM
    ]
    assert not_followed == ["an exposure beyond the budget"]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if CASES[row.input].program is None], ids=lambda row: row.input
)
def test_the_journal_holds_the_exact_bytes_of_the_line(row: Row, play: PlayRow) -> None:
    case, played = CASES[row.input], play(row.input)
    if case.argv is None:
        turn = case.input_turn
        assert played.received[turn - 1] == case.line(played.messages[turn - 1])
    else:
        assert played.received == [b""]


def test_an_identifier_is_current_until_an_action_and_stale_from_then_on(play: PlayRow) -> None:
    for row in ROWS:
        played, turn = play(row.input), CASES[row.input].input_turn
        if row.is_rejection or row.outcome == "accepted":
            before, after = (played.messages[turn + shift]["request_id"] for shift in (-1, 0))
            assert (before == after) == row.is_rejection, row.input
    repeated = play("the identifier of an earlier request")
    assert repeated.messages[0]["request_id"] != repeated.messages[1]["request_id"]


# -- accepted oddities --------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.command is not None])
def test_an_accepted_command_is_shown_as_it_was_understood(name: str, play: PlayRow) -> None:
    command = play(name).messages[1]["observation"]["command_opd_nm"]
    assert list(map(repr, command)) == list(map(repr, CASES[name].command or []))


def test_a_saved_fit_is_shown_again_and_says_so(play: PlayRow) -> None:
    first, again = (
        message["last_result"]
        for message in play("an estimate without a new image since the last").messages[2:4]
    )
    assert (first["cached"], again["cached"]) == (False, True)
    assert first["fit"] == again["fit"]


def test_the_last_allowed_exposure_stands_in_the_acknowledgement(play: PlayRow) -> None:
    played = play("the last allowed request, an exposure")
    assert played.messages[-1]["last_acquired_observation"]["exposure_index"] == 1
    assert played.messages[-1]["earlier_observations_of_final_command"] == [1]


def test_a_rejection_of_the_last_allowed_request_keeps_its_code_in_the_record(
    play: PlayRow,
) -> None:
    played = play("the last allowed request, a line that is rejected")
    assert played.responses[-1]["rejection"] == "missing_field"


# -- endings ------------------------------------------------------------------------


def test_only_four_causes_fail_a_session_and_the_page_lists_them() -> None:
    listed = {cells[0].strip("`"): cells[1] for cells in table(TEXT, "Cause")}
    assert {cause for cause, status in listed.items() if status == "failed"} == FAILING_CAUSES
    assert set(listed) == set(typing.get_args(wire.Outcome.model_fields["cause"].annotation))
    ended = {row.code for row in ROWS if row.outcome.startswith("ends: ")}
    assert ended == set(listed)


@pytest.mark.parametrize(
    ("row", "received"),
    [
        ("half a line, then silence", HALF),
        ("the end of input within a line", HALF),
        ("no line at all", lambda _message: b""),
        ("an action from a client that never reads", exposes()),
    ],
)
def test_what_had_come_before_a_fault_is_recorded(
    row: str, received: typing.Callable[[Message], bytes], play: PlayRow
) -> None:
    played = play(row)
    assert played.received == [received(played.messages[0])]
    assert (played.folder / "turns" / "turn_0001_fault.json").is_file()


@pytest.mark.parametrize("row", ["a line of 16,385 bytes", "a flood without newline"])
def test_an_oversize_line_is_recorded_up_to_one_byte_beyond_the_bound(
    row: str, play: PlayRow
) -> None:
    assert [len(data) for data in play(row).received] == [MAX_LINE_BYTES + 1]


def test_a_failed_session_is_judged_at_its_last_measured_command(play: PlayRow) -> None:
    played = play("the last allowed request, an estimate")
    final = played.messages[-1]
    assert final["final_command_opd_nm"] == final["last_acquired_observation"]["command_opd_nm"]
    assert not played.outcome.submitted


def test_bytes_after_the_end_stand_nowhere_in_the_folder(play: PlayRow) -> None:
    played = play("anything after a submission")
    assert len(played.received) == 1
    assert played.received[0].count(b"\n") == 1


# -- the page's other lists -----------------------------------------------------------


def test_the_page_names_every_field_of_the_drivers_messages() -> None:
    for model in wire.DRIVER_MESSAGES.values():
        missing = [name for name in model.model_fields if f"`{name}`" not in TEXT]
        assert missing == []


def test_the_actions_of_the_page_are_valid_once_they_have_an_identifier() -> None:
    block = TEXT.partition("```json\n")[2].partition("```")[0]
    lines = block.replace("<identifier>", "0" * 32).splitlines(keepends=True)
    for model, line in zip(wire.CLIENT_MESSAGES.values(), lines, strict=True):
        model.model_validate_json(line)
