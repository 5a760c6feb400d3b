"""What the doctor makes of its findings."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from probebench.app import doctor
from probebench.app.doctor import FOLDER_CHECKS, MACHINE_CHECKS, Row, examine
from probebench.host.filesystem import Filesystem
from probebench.host.probing import Level, System
from probebench.kernel.errors import ExitCode, OperatorError, SandboxUnavailableError
from tests.environments.optical.protocol_page import table


class Quick(System):
    """Starts no process: the probes that need one are tested by themselves."""

    def __init__(self, code: int = 0) -> None:
        self.code = code

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, self.code, "", "")


@pytest.fixture(autouse=True)
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one is tried in tests/process."""

    def refuse(*_: object) -> None:
        raise SandboxUnavailableError("the sandbox needs bwrap, which is not installed")

    monkeypatch.setattr(doctor, "sandbox_for", refuse)


class FsyncFails(Filesystem):
    def before(self, step: str, name: str) -> None:
        if step == "fsync_file":
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def rows_by_name(rows: list[Row]) -> dict[str, Row]:
    return {row.check: row for row in rows}


def test_every_check_makes_one_row_and_leaves_nothing(tmp_path: Path) -> None:
    rows = examine(tmp_path, Filesystem(), Quick())
    names = [check.name for check in (*FOLDER_CHECKS, *MACHINE_CHECKS)]
    assert [row.check for row in rows] == ["writable", *names]
    assert all(row.seen and row.promise for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_what_a_session_needs_fails_and_what_it_does_not_is_a_note(tmp_path: Path) -> None:
    rows = rows_by_name(examine(tmp_path, FsyncFails(), Quick(code=0)))
    assert rows["fsync of a file"].result is Level.FAILED
    assert rows["durable publish"].result is Level.FAILED
    assert rows["lock between processes"].result is Level.FAILED
    assert rows["fsync of a folder"].result is Level.OK
    assert rows["sandbox"].result is Level.NOTE
    assert "bwrap, which is not installed" in rows["sandbox"].seen
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_in_fails_and_the_machine_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(doctor, "TemporaryDirectory", refuse)
    rows = examine(tmp_path, Filesystem(), Quick())
    assert rows[0].result is Level.FAILED
    assert "Read-only file system" in rows[0].seen
    assert [row.check for row in rows[1:]] == [check.name for check in MACHINE_CHECKS]


def test_a_package_that_cannot_be_imported_is_a_row_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    rows = rows_by_name(examine(tmp_path, Filesystem(), Quick()))
    assert rows["blas"].result is Level.NOTE
    assert "threadpoolctl" in rows["blas"].seen


def test_a_session_folder_is_not_written_in(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(OperatorError, match="holds a session"):
        examine(tmp_path, Filesystem(), Quick())


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="nowhere"):
        examine(tmp_path / "nowhere", Filesystem(), Quick())


ROWS = [
    Row("lock", Level.OK, "works", "one driver"),
    Row("sandbox", Level.NOTE, "missing \x1b[31m", "no agent looks"),
    Row("fsync", Level.FAILED, "fails " * 40, "nothing is lost"),
]


@pytest.fixture
def prescribed(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    rows = list(ROWS)
    monkeypatch.setattr(doctor, "examine", lambda *_: rows)
    return rows


def test_a_failed_row_is_the_hosts_error(
    prescribed: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.doctor(tmp_path, as_json=False) is ExitCode.HOST_ERROR
    assert "not fit for sessions: fsync" in capsys.readouterr().out
    del prescribed[-1]
    assert doctor.doctor(tmp_path, as_json=False) is ExitCode.COMPLETE
    assert "\nfit for sessions (" in capsys.readouterr().out


def test_a_pipe_gets_one_line_a_row(
    prescribed: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor.doctor(tmp_path, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(prescribed) + 1
    assert lines[0] == "ok      lock: works"
    assert lines[1] == "note    sandbox: missing \\x1b[31m [no agent looks]"


def test_a_program_gets_one_document(
    prescribed: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor.doctor(tmp_path, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] is False
    assert found["checks"][0] == {
        "check": "lock",
        "result": "ok",
        "seen": "works",
        "promise": "one driver",
    }
    assert len(found["checks"]) == len(prescribed)


def test_a_terminal_gets_a_table(prescribed: list[Row], tmp_path: Path) -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=70)
    doctor._print(tmp_path, prescribed, ["fsync"], console)
    text = screen.getvalue()
    assert "what depends on it" in text.splitlines()[0]
    assert "\x1b[31m" not in text  # of the row; the styles of the table are others
    assert "\\x1b[31m" in text


def test_the_page_lists_every_check(repository: Path) -> None:
    page = (repository / "docs" / "doctor.md").read_text(encoding="utf-8")
    names = [check.name for check in (*FOLDER_CHECKS, *MACHINE_CHECKS)]
    assert [cells[0] for cells in table(page, "Check")] == ["writable", *names]
