"""The runner of the pages sees what is wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block, anchors, blocks, links
from tests.docs.runner import Desk, run_block, session, without_not_run


@pytest.fixture
def desk(repository: Path, tmp_path: Path) -> Desk:
    return Desk.lay(repository, tmp_path)


def _block(language: str, text: str, **options: str) -> Block:
    return Block(language, options, text, line=1)


def test_a_failing_command_is_reported_with_its_output(desk: Desk) -> None:
    complaint = run_block(desk, _block("sh", "echo told\nexit 3\n"))
    assert complaint == "exit status 3 instead of 0; it printed\ntold\n"


def test_a_failure_before_the_last_command_is_not_missed(desk: Desk) -> None:
    assert run_block(desk, _block("sh", "false\ntrue\n")) is not None
    assert run_block(desk, _block("sh", "false | cat\n")) is not None


def test_an_expected_exit_status_must_come(desk: Desk) -> None:
    assert run_block(desk, _block("sh", "exit 3\n", exit="3")) is None
    assert run_block(desk, _block("sh", "true\n", exit="3")) is not None


def test_a_block_that_needs_a_program_runs_where_there_is_one(desk: Desk) -> None:
    assert run_block(desk, _block("sh", "false\n", needs="no-such-program-here")) is None
    assert run_block(desk, _block("sh", "false\n", needs="sh")) is not None


def test_uv_run_runs_in_the_environment_of_the_tests(desk: Desk) -> None:
    assert run_block(desk, _block("sh", "uv run --locked python -c 'import probebench'\n")) is None
    assert run_block(desk, _block("sh", "uv run python -c 'import nothing_of_that_name'\n"))
    assert run_block(desk, _block("sh", "uv pip install something\n")) is not None


def test_blocks_of_a_page_share_a_folder(desk: Desk) -> None:
    assert run_block(desk, _block("python", "print('hello')\n", file="agent.py")) is None
    assert run_block(desk, _block("console", "$ uv run python agent.py\nhello\n")) is None


def test_a_failing_python_example_is_reported(desk: Desk) -> None:
    assert run_block(desk, _block("python", "assert 1 + 1 == 2\n")) is None
    complaint = run_block(desk, _block("python", "assert 1 + 1 == 3\n"))
    assert complaint is not None
    assert "AssertionError" in complaint


def test_a_transcript_must_show_what_is_printed(desk: Desk) -> None:
    assert run_block(desk, _block("console", "$ echo 12 mm\n...mm\n")) is None
    complaint = run_block(desk, _block("console", "$ echo 12 mm\n13 mm\n"))
    assert complaint is not None
    assert "12 mm" in complaint
    assert "13 mm" in complaint


def test_a_transcript_begins_with_a_command() -> None:
    with pytest.raises(ValueError, match="must begin"):
        session("output without a command\n")


def test_a_continued_command_is_one_command() -> None:
    assert session("$ a \\\n  b\nout\n$ c\n") == [("a \\\n  b\n", "out\n"), ("c\n", "")]


def test_only_listed_commands_are_left_out() -> None:
    assert without_not_run("make demo   # installs\nuv run probebench --help") == (
        "uv run probebench --help"
    )


def test_a_longer_fence_holds_a_shorter_one() -> None:
    found = blocks("````text\n```sh\nfalse\n```\n````\n```sh exit=3\nexit 3\n```\n")
    assert [(block.language, block.options) for block in found] == [
        ("text", {}),
        ("sh", {"exit": "3"}),
    ]


def test_a_block_without_an_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2 is never closed"):
        blocks("text\n```sh\ntrue\n")


def test_links_in_blocks_are_no_links() -> None:
    assert links("[a](b.md#c)\n```text\n[d](e.md)\n```\n[f](g.md)\n") == ["b.md#c", "g.md"]


def test_anchors_are_spelled_as_in_a_url() -> None:
    assert anchors("# Exit codes\n## What `verify` checks\n```sh\n# no heading\n```\n") == {
        "exit-codes",
        "what-verify-checks",
    }
