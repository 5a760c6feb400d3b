"""What a sandbox refuses to show, and machines that cannot give one."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from probebench.host import sandbox
from probebench.host.sandbox import View
from probebench.host.sandbox_view import Hidden, view_of
from probebench.host.signals import NoSignals
from probebench.host.subprocess_channel import SharedClient
from probebench.kernel.episode import Fault, FaultKind
from probebench.kernel.errors import OperatorError, SandboxUnavailableError
from tests.process.boxes import LONG_S, NEEDS_BWRAP, PACKAGE, asked, sandboxed
from tests.process.drivers import (
    DIRECT,
    REPOSITORY,
    SCRIPTED,
    environment,
    run,
    run_forked,
)

# -- what is refused ---------------------------------------------------------------------------


def hidden(tmp_path: Path, **changes: Path) -> Hidden:
    (tmp_path / "operator").mkdir(exist_ok=True)
    config = tmp_path / "operator/config.json"
    config.touch()
    places = {"session": tmp_path / "operator/session", "config": config, "package": PACKAGE}
    return Hidden(**{**places, **changes})


@pytest.mark.parametrize(
    ("bind", "what"),
    [
        ("operator", "the configuration"),
        ("operator/config.json", "the configuration"),
        ("operator/session", "the session folder"),
        ("linked", "the configuration"),
        (PACKAGE, "the package's source"),
        (PACKAGE / "environments", "the package's source"),
        (REPOSITORY / "configs", "the checkout"),
        (REPOSITORY / "tests/process", "the checkout"),
        (REPOSITORY, "the checkout"),
    ],
)
def test_nothing_that_holds_what_is_hidden_is_shown(
    bind: str | Path, what: str, tmp_path: Path
) -> None:
    places = hidden(tmp_path)
    places.session.mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "operator")
    with pytest.raises(OperatorError, match=what):
        view_of(["/bin/true"], [tmp_path / bind], places)


def test_a_command_that_names_what_is_hidden_is_refused(tmp_path: Path) -> None:
    places = hidden(tmp_path)
    with pytest.raises(OperatorError, match=r"config.json', which holds the configuration"):
        view_of(["/bin/cat", str(places.config)], [], places)


def test_a_word_that_is_no_files_name_shows_nothing(tmp_path: Path) -> None:
    words = ["/bin/echo", "/" + "x" * 5000, "/no/such/file", "relative"]
    assert view_of(words, [], hidden(tmp_path)) == view_of(words[:1], [], hidden(tmp_path))


@pytest.mark.parametrize(
    ("bind", "sentence"),
    [("missing", "does not exist"), ("/", "would cover"), ("/tmp", "would cover")],
)
def test_a_path_that_cannot_be_shown_is_refused(bind: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=sentence):
        view_of(["/bin/true"], [tmp_path / bind], hidden(tmp_path))


def test_a_session_folder_among_the_systems_own_is_refused(tmp_path: Path) -> None:
    places = hidden(tmp_path, session=Path("/usr/share/sessions/a"))
    with pytest.raises(OperatorError, match="the session folder lies in '/usr'"):
        view_of(["/bin/true"], [], places)


@NEEDS_BWRAP
def test_a_program_whose_interpreter_is_not_there_is_the_operators_mistake(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o700)
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a", "--sandbox")
    refused = run_forked(*words, "--agent", program)
    assert refused.returncode == 2
    assert (
        b"cannot be run in the sandbox; show it what it needs with --sandbox-bind" in refused.stderr
    )
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sandbox",), b"--sandbox goes with --agent alone"),
        (("--agent", SCRIPTED, "--sandbox-bind", "."), b"--sandbox-bind goes with --sandbox alone"),
    ],
)
def test_an_option_without_its_fellow_is_refused(
    words: tuple[str, ...], sentence: bytes, tmp_path: Path
) -> None:
    refused = run_forked("session", "--config", DIRECT, "--output", tmp_path / "a", *words)
    assert refused.returncode == 2
    assert sentence in refused.stderr.replace(b"\n", b" ")


# -- machines that cannot ------------------------------------------------------------------------


def launcher(tmp_path: Path, script: str) -> str:
    """A search path on which bwrap is this shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (None, b"needs bwrap, which is not installed; install bubblewrap"),
        ("echo bubblewrap 0.4.1", b"'bubblewrap 0.4.1', which is too old"),
        ("exit 1", b"is '', which is too old"),
        (
            'case "$1" in --version) echo bubblewrap 0.9.0;; *) echo no namespaces >&2; exit 1;; esac',
            b"the sandbox cannot be made (no namespaces)",
        ),
    ],
)
def test_without_a_sandbox_nothing_begins(
    script: str | None, sentence: bytes, tmp_path: Path
) -> None:
    path = str(tmp_path) if script is None else launcher(tmp_path, script)
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a", "--sandbox")
    refused = run(*words, "--agent", SCRIPTED, "--json", env=environment(PATH=path))
    assert refused.returncode == 7
    assert sentence in refused.stderr
    assert json.loads(refused.stdout)["exit_code"] == 7
    assert not (tmp_path / "a").exists()


FAILS_THE_SECOND_TIME = """
[ "$1" = --version ] && exec {bwrap} --version
[ -e {used} ] && {{ echo "bwrap: out of namespaces" >&2; exit 1; }}
touch {used}
exec {bwrap} "$@"
"""


@NEEDS_BWRAP
@pytest.mark.parametrize("kept", [True, False])
def test_a_sandbox_that_fails_after_its_test_is_no_fault_of_the_clients(
    kept: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    script = FAILS_THE_SECOND_TIME.format(bwrap=shutil.which("bwrap"), used=tmp_path / "used")
    path = f"{launcher(tmp_path, script)}:{os.environ['PATH']}"
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a", "--sandbox")
    extra = () if kept else ("--agent-stderr", tmp_path / "errors")
    ran = run(*words, "--agent", SCRIPTED, *extra, env=environment(PATH=path))
    assert ran.returncode == 7, ran.stderr
    said = b"(bwrap: out of namespaces)" if kept else b"what it said is in the file"
    assert said in ran.stderr
    assert not (tmp_path / "a/turns").exists()
    assert run("resume", tmp_path / "a", "--agent", SCRIPTED, "--sandbox").returncode == 0


@NEEDS_BWRAP
def test_an_ask_that_the_sandbox_fails_is_no_answer(tmp_path: Path) -> None:
    command = sandboxed(tmp_path, "write(b'{}')")
    assert command.sandbox is not None
    broken = launcher(tmp_path, "echo bwrap: no room >&2; exit 1")
    with pytest.raises(SandboxUnavailableError, match=r"bwrap: no room"):
        asked(replace(command, sandbox=replace(command.sandbox, launcher=f"{broken}/bwrap")))


@NEEDS_BWRAP
def test_a_launcher_killed_by_the_system_is_no_failure_of_the_sandbox(tmp_path: Path) -> None:
    command = sandboxed(tmp_path, "read_line(); time.sleep(600)")
    client = SharedClient(command, "agent", NoSignals())
    client.send(b"{}\n", LONG_S)
    os.kill(client._process._process.pid, signal.SIGKILL)
    assert client.exchange(b"{}\n", LONG_S).fault == Fault(FaultKind.EOF)
    client.close()


def test_folders_are_mounted_before_what_lies_in_them() -> None:
    view = View(folders=("/a/b/c", "/a"), files=("/a/b/c/d",), emptied=("/a/b",))
    words = list(sandbox._mounts(view))
    places = [words.index(path) for path in ("/a", "/a/b", "/a/b/c", "/a/b/c/d")]
    assert places == sorted(places)
    assert view.shows("/a/b/c/d/e")
    assert not view.shows("/ab")
