"""`probebench show`: where the page goes, and what is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from probebench import cli
from probebench.app import commands
from probebench.app.session import run_session
from probebench.app.show import read_session, report_of, sections_of
from probebench.app.streams import BESIDE_THE_FOLDER
from probebench.kernel.canonical import decode, encode, sha256_hex
from probebench.kernel.episode import Ask
from probebench.kernel.errors import ArtifactError, ExitCode, OperatorError
from tests.rigs import RepliesInProcess, constant_rig
from tests.unit.app.shown import FINISHED, Page, page_of, play


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("show") / "session", FINISHED[:2])


def test_the_page_is_written_for_its_owner_alone_and_may_be_written_again(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.html"
    for _ in range(2):
        assert commands.show(folder, as_json=False, html=str(target)) == ExitCode.COMPLETE
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert capsys.readouterr().out == f"page: {target}\n" * 2


def test_a_dash_is_standard_output(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    commands.show(folder, as_json=False, html="-")
    out = capfdbinary.readouterr().out.decode()
    assert out == page_of(read_session(folder))


def test_a_page_without_a_name_lies_beside_the_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder.with_name(f"{folder.name}.html")
    try:
        commands.show(folder, as_json=False, html=BESIDE_THE_FOLDER)
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert capsys.readouterr().out == f"page: {page}\n"
    finally:
        page.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("given", "completed"),
    [
        (["show", "D", "--html"], ["show", "D", "--html", ""]),
        (["show", "D", "--html", "P"], ["show", "D", "--html", "P"]),
        (["show", "D", "--html", "-"], ["show", "D", "--html", "-"]),
        (["show", "D", "--html", "--json"], ["show", "D", "--html", "", "--json"]),
        (["verify", "--html"], ["verify", "--html"]),
        ([], []),
    ],
)
def test_the_name_of_the_page_may_be_left_out(given: list[str], completed: list[str]) -> None:
    assert cli._with_optional_values(given) == completed


def test_a_page_inside_the_session_folder_is_refused(folder: Path) -> None:
    target = folder / "turns" / ".." / "page.html"
    with pytest.raises(OperatorError, match="would lie in the session folder"):
        commands.show(folder, as_json=False, html=str(target))
    assert not (folder / "page.html").exists()


def test_a_page_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"cannot write .*no/page\.html"):
        commands.show(folder, as_json=False, html=str(tmp_path / "no" / "page.html"))


def test_one_form_at_a_time(folder: Path) -> None:
    with pytest.raises(OperatorError, match="--json and --html"):
        commands.show(folder, as_json=True, html="-")


def test_json_holds_the_sentences_and_the_rows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands.show(folder, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["headline"] == ["The session is unfinished after 2 turns; it can be resumed."]
    assert [row[1] for row in shown["rows"]] == ["", "expose", "(rejected)"]
    assert shown["evaluator"] is None


def test_the_head_is_the_last_record_even_where_its_response_is_missing(tmp_path: Path) -> None:
    folder = play(tmp_path / "cut", FINISHED[:2])
    last = folder / "turns" / "turn_0002_input.json"
    (folder / "turns" / "turn_0002_response.json").unlink()
    session = read_session(folder)
    assert len(session.turns) == 1
    assert session.head_sha256 == sha256_hex(last.read_bytes())


def test_records_that_do_not_read_as_a_session_are_an_artifact_s_fault(tmp_path: Path) -> None:
    folder = play(tmp_path / "damaged", FINISHED[:1])
    record = folder / "turns" / "turn_0001_response.json"
    damaged = decode(record.read_bytes())
    del damaged["message"]["observation"]
    record.write_bytes(encode(damaged))
    session = read_session(folder)
    for look in (report_of, sections_of):
        with pytest.raises(ArtifactError, match="do not read as a session"):
            look(constant_rig(), session)


def test_an_environment_without_a_reporter_has_a_page_of_its_turns(tmp_path: Path) -> None:
    def reply(_ask: Ask, message: dict[str, Any]) -> bytes:
        do = "answer" if message["readings"] else "read"
        return encode({"id": message["id"], "do": do, "value": "<script>"})

    config = {"environment": "thermometer", "seed": "5" * 32}
    run_session(constant_rig(), tmp_path / "toy", config, RepliesInProcess(reply))
    page = Page(page_of(read_session(tmp_path / "toy")))
    assert "The session is submitted." in page.words
    assert len(page.all("table")) == 2  # turns and provenance
    assert "<script>" in page.words
    assert page.all("script") == page.all("img") == []
