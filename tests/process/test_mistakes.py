"""Mistakes of operators and machines: one sentence, a documented code, nothing touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.process.drivers import (
    REPOSITORY,
    SCRIPTED,
    ZERO,
    agent,
    command,
    driver,
    run,
    write_config,
)
from tests.rigs import folder_bytes

DIRECT = REPOSITORY / "configs/agent_protocol_development_direct.json"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete session; what a test changes it puts back."""
    folder = tmp_path_factory.mktemp("finished") / "session"
    words = ("session", "--config", DIRECT, "--output", folder, "--agent", SCRIPTED)
    assert run(*words).returncode == 0
    return folder


def refused(code: int, *words: str | Path) -> str:
    ran = run(*words)
    assert ran.returncode == code, ran.stderr
    assert b"Traceback" not in ran.stderr
    return ran.stderr.decode()


# -- other people's files ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["notes.txt", "sub/.draft.publishing", "turns/extra", ".hidden"])
def test_a_folder_with_other_files_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("precious")
    given = ("--config", DIRECT, "--output", folder, "--agent", SCRIPTED)
    refused(2, "session", *given)
    refused(2, "session", *given, "--resume")
    refused(2, "resume", folder, "--agent", SCRIPTED)
    assert folder_bytes(folder) == {name: b"precious"}


def begun(folder: Path) -> None:
    """A session that was killed after its first turn."""
    with driver("session", "--config", DIRECT, "--output", folder) as speaker:
        speaker.act(speaker.receive(), "expose", ZERO)
        speaker.receive()
        speaker.process.kill()


@pytest.mark.parametrize(
    "name", ["notes.txt", "source/evil.py", "turns/turn_0009_input.json", "turns/.x.publishing"]
)
def test_a_stray_in_an_unfinished_folder_is_named_before_anything_is_spent(
    name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "a"
    begun(folder)
    (folder / name).write_text("stray")
    before = folder_bytes(folder)
    text = refused(3, "resume", folder, "--agent", SCRIPTED)
    # A turn far ahead is told by the one that is missing before it.
    assert name in text or "turn_0002_response.json" in text
    assert run("verify", folder).stdout.splitlines()[-1].startswith(b"FAILED")
    assert folder_bytes(folder) == before
    (folder / name).unlink()
    assert run("resume", folder, "--agent", SCRIPTED).returncode == 0


def test_a_stray_temporary_in_a_completed_folder_is_evidence_and_stays(finished: Path) -> None:
    stray = finished / "turns" / ".turn_0004_input.json.publishing"
    stray.write_text("stray")
    assert run("verify", finished).returncode == 3
    assert run("resume", finished).returncode == 0
    assert stray.read_text() == "stray"
    stray.unlink()


def test_a_manifest_that_was_linked_but_not_finished_is_finished_by_resume(finished: Path) -> None:
    twin = finished / ".manifest.json.publishing"
    os.link(finished / "manifest.json", twin)
    assert run("resume", finished).returncode == 0
    assert not twin.exists()
    assert run("verify", finished).returncode == 0


# -- clients that go -------------------------------------------------------------------------


@pytest.mark.parametrize("submits", [False, True])
def test_a_client_that_goes_at_the_end_leaves_a_sealed_folder(
    tmp_path: Path, *, submits: bool
) -> None:
    with driver("session", "--config", DIRECT, "--output", tmp_path / "a") as speaker:
        request = speaker.receive()
        if submits:
            speaker.act(request, "submit", ZERO)
        assert speaker.process.stdout is not None
        assert speaker.process.stdin is not None
        speaker.process.stdout.close()
        speaker.process.stdin.close()
        assert speaker.process.wait(timeout=20) == (0 if submits else 1)
    assert run("verify", tmp_path / "a").returncode == 0


def test_what_a_client_says_cannot_move_the_terminal(tmp_path: Path) -> None:
    program = r"import sys; sys.stderr.write('\x1b]0;owned\x07\n\x9b2J last words'); sys.exit(3)"
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a")
    ran = run(*words, "--agent", agent(tmp_path, program))
    assert ran.returncode == 1
    assert b"last words" in ran.stderr
    assert b"\x1b" not in ran.stderr


def test_a_client_given_as_a_long_program_text_is_started(tmp_path: Path) -> None:
    text = "x=1;" * 100 + "import sys;sys.exit(3)"
    words = ("session", "--config", DIRECT, "--output", tmp_path / "a")
    assert run(*words, "--agent", f"python -c '{text}'").returncode == 1


# -- options and paths ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("--expect-head", "00"),
        ("--refit",),
        ("--agent-env", "HOME"),
        ("--agent-stderr", "errors.txt"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    text = refused(2, "session", "--config", DIRECT, "--output", tmp_path / "a", *words)
    assert words[0] in text
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "words", [("--agent", "x"), ("--config", "x"), ("--resume",), ("--agent-env", "HOME")]
)
def test_verification_takes_no_option_of_a_run(words: tuple[str, ...], finished: Path) -> None:
    assert words[0] in refused(2, "session", "--verify", finished, *words)


@pytest.mark.parametrize("name", ["verify", "show", "resume"])
def test_a_path_that_cannot_be_looked_up_is_refused(name: str, tmp_path: Path) -> None:
    refused(2, name, tmp_path / ("x" * 300))
    refused(2, name, tmp_path / "nothing")
    (tmp_path / "file").touch()
    refused(2, name, tmp_path / "file")


def test_the_whole_disk_is_not_searched_for_a_session() -> None:
    ran = run("verify", "/")
    assert ran.returncode == 3
    assert b"no session was begun" in ran.stdout


def test_a_usage_error_is_one_document_with_json() -> None:
    for words in (("verify",), ("session", "--bogus"), ("show",)):
        ran = run(*words, "--json")
        assert ran.returncode == 2
        assert json.loads(ran.stdout)["exit_code"] == 2


def test_a_folder_of_any_name_works(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/na\xefve \xf0\x9f\x94\xad folder")
    words = ("session", "--config", DIRECT, "--output", folder, "--agent", SCRIPTED, "--json")
    ran = run(*words)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["status"] == "submitted"
    assert run("verify", folder, "--json").returncode == 0


# -- streams ------------------------------------------------------------------------------------


def test_closed_standard_streams_are_no_defect(tmp_path: Path) -> None:
    session = command("session", "--config", DIRECT, "--output")
    quoted = " ".join(f"'{word}'" for word in session)
    agent_given = f"--agent '{SCRIPTED}'"
    for number, (redirection, code) in enumerate({"2>&-": 0, "0<&- >/dev/null": 0}.items()):
        line = f"{quoted} '{tmp_path / str(number)}' {agent_given} {redirection}"
        assert subprocess.run(line, shell=True, check=False).returncode == code
    line = f"{quoted} '{tmp_path / 'own'}' 0<&-"
    ran = subprocess.run(line, shell=True, check=False, capture_output=True)
    assert ran.returncode == 5
    assert b"standard input is closed" in ran.stderr


def test_a_full_or_broken_standard_output_is_the_machines_fault(finished: Path) -> None:
    quoted = " ".join(f"'{word}'" for word in command("verify", finished))
    assert subprocess.run(f"{quoted} > /dev/full", shell=True, check=False).returncode == 5
    script = f"{quoted} | head -c 1 > /dev/null; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", script], check=False, capture_output=True)
    assert ran.returncode in (0, 5)  # 0 where all was written before the reader had gone
    assert b"Traceback" not in ran.stderr


def test_an_interrupt_at_any_moment_has_its_own_code(tmp_path: Path) -> None:
    for number, delay_s in enumerate((0.25, 0.5)):
        words = ("session", "--config", DIRECT, "--output", tmp_path / str(number))
        with driver(*words) as speaker:
            try:
                speaker.process.wait(timeout=delay_s)
            except subprocess.TimeoutExpired:
                speaker.process.send_signal(signal.SIGINT)
            # -2: the interpreter had not come to this program yet.
            assert speaker.process.wait(timeout=20) in (130, -signal.SIGINT)


# -- configurations ---------------------------------------------------------------------------------

SEED = "42CF526E27117B01A7E858457035B0F5"


@pytest.mark.parametrize(
    "text",
    [
        f'"wavefront_seed": "{SEED}"',
        f'"wavefront_seed": {SEED}',
        '"wavefront_seed": 88888888888888888888888888888888888888',
        f'"wavefront_seed": ["{SEED}"]',
        f'"wavefront_seed": "{SEED}", "wavefront_seed": "{SEED}"',
    ],
)
def test_an_error_in_a_seed_does_not_show_it(text: str, tmp_path: Path) -> None:
    config = write_config(tmp_path / "config.json")
    good = json.loads(config.read_text())["fixture"]["wavefront_seed"]
    config.write_text(config.read_text().replace(f'"wavefront_seed": "{good}"', text))
    shown = refused(2, "session", "--config", config, "--output", tmp_path / "a")
    assert SEED[:10] not in shown
    assert "8888888888" not in shown


def test_an_error_in_the_name_does_not_show_it(tmp_path: Path) -> None:
    config = write_config(tmp_path / "config.json", name="secret name " * 50)
    shown = refused(2, "session", "--config", config, "--output", tmp_path / "a")
    assert "name: " in shown
    assert "secret" not in shown
