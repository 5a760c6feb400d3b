"""keygen, sign and verify --public-key as commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process.drivers import DEVELOPMENT, DIRECT, REPOSITORY, run, run_forked, unfinished
from tests.rigs import folder_bytes, writable_again


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pairs of keys."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("key", "other"):
        assert run_forked("keygen", "--output", folder / name).returncode == 0
    return folder


@pytest.fixture(scope="module")
def signed(finished: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed session; not to be changed."""
    folder = tmp_path_factory.mktemp("signed") / "session"
    shutil.copytree(finished, folder)
    ran = run("sign", folder, "--key", keys / "key")
    assert ran.returncode == 0, ran.stderr
    return folder


def verified(folder: Path, *words: str | Path) -> tuple[int, Any]:
    ran = run_forked("verify", folder, "--json", *words)
    assert b"Traceback" not in ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def refused(code: int, *words: str | Path) -> str:
    ran = run_forked(*words)
    assert ran.returncode == code, (ran.stdout, ran.stderr)
    assert b"Traceback" not in ran.stderr
    return (ran.stdout + ran.stderr).decode()


def test_a_signed_session_passes_with_its_key_and_names_it(signed: Path, keys: Path) -> None:
    code, found = verified(signed, "--public-key", keys / "key.pub")
    assert code == 0
    assert found["verified"]
    assert found["signature"]["expected"]
    assert found["signature"]["computed"]
    described = json.loads((signed / "signature.json").read_bytes())
    assert found["signature"]["key_sha256"] == described["key_sha256"]


def test_without_a_key_the_signature_is_named_and_the_doubt_is_told(signed: Path) -> None:
    ran = run_forked("verify", signed)
    assert ran.returncode == 0
    (line,) = [line for line in ran.stdout.splitlines() if b"signature" in line]
    assert line.endswith(b"(not checked against a key)")
    assert not verified(signed)[1]["signature"]["expected"]


def test_an_unsigned_session_has_no_signature_in_the_document(finished: Path) -> None:
    code, found = verified(finished)
    assert (code, found["signature"]) == (0, None)


def test_another_key_is_refused(signed: Path, keys: Path) -> None:
    code, found = verified(signed, "--public-key", keys / "other.pub")
    assert (code, found["failed_artifact"]) == (3, "signature.json")


def test_a_session_that_is_not_signed_is_refused_by_its_key(finished: Path, keys: Path) -> None:
    text = refused(3, "verify", finished, "--public-key", keys / "key.pub")
    assert "\nFAILED  signature.json: this file is missing" in text


def test_an_unfinished_session_is_neither_signed_nor_verified(keys: Path, tmp_path: Path) -> None:
    unfinished(tmp_path / "a")
    before = folder_bytes(tmp_path / "a")
    assert "only a session that verifies" in refused(
        3, "sign", tmp_path / "a", "--key", keys / "key"
    )
    assert folder_bytes(tmp_path / "a") == before
    text = refused(3, "verify", tmp_path / "a", "--public-key", keys / "key.pub")
    assert text.splitlines()[-1].startswith("UNFINISHED")


def test_a_signed_session_is_resumed_without_a_change(signed: Path, keys: Path) -> None:
    before = folder_bytes(signed)
    again = ("session", "--config", DIRECT, "--output", signed, "--resume", "--agent", "false")
    for words in (("resume", signed, "--agent", "false"), again):
        assert run_forked(*words).returncode == 0
    assert folder_bytes(signed) == before
    assert "signed already" in refused(2, "sign", signed, "--key", keys / "key")
    assert folder_bytes(signed) == before


def test_a_signed_session_verifies_read_only_and_elsewhere(
    signed: Path, keys: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(signed, moved)
    with writable_again(moved):
        assert verified(moved, "--public-key", keys / "key.pub")[0] == 0


def test_a_signed_session_is_shown(signed: Path) -> None:
    assert run_forked("show", signed).returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("keygen",), "the option --output is missing"),
        (("sign", "here"), "the option --key is missing"),
        (("sign", "here", "--key", "nowhere"), "cannot read the key 'nowhere'"),
        (("verify", "here", "--public-key", "nowhere"), "cannot read the public key 'nowhere'"),
        (("verify", "here", "--transcript", "nowhere"), "cannot read the transcript 'nowhere'"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    text = refused(2, *words)
    assert sentence in text
    assert len(text.splitlines()) == 1


def test_a_key_is_not_replaced(keys: Path) -> None:
    before = folder_bytes(keys)
    assert "is kept" in refused(2, "keygen", "--output", keys / "key")
    assert folder_bytes(keys) == before


def test_a_key_is_not_made_within_a_session(finished: Path) -> None:
    assert "elsewhere" in refused(2, "keygen", "--output", finished / "key")
    assert not (finished / "key").exists()


def test_a_quiet_command_prints_nothing(tmp_path: Path) -> None:
    ran = run_forked("keygen", "--output", tmp_path / "key", "--quiet")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert (tmp_path / "key.pub").exists()


def test_a_new_key_is_told_as_a_document(tmp_path: Path) -> None:
    ran = run_forked("keygen", "--output", tmp_path / "key", "--json")
    found = json.loads(ran.stdout)
    assert found["private_key"] == str(tmp_path / "key")
    assert Path(found["public_key"]).exists()
    assert len(found["key_sha256"]) == 64


WITHOUT = "import sys; sys.modules['cryptography'] = None; from probebench.cli import main; main()"


@pytest.mark.parametrize(
    "words", [("keygen", "--output", "key"), ("sign", "a", "--key", "key")], ids=["keygen", "sign"]
)
def test_without_the_extra_one_sentence_says_how_to_install_it(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert b"uv sync --extra sign" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_a_client_received_is_found_in_the_folder(tmp_path: Path) -> None:
    """tee keeps what it is sent; a session played again does not match it."""
    transcript = tmp_path / "transcript.jsonl"
    scripted = f"{sys.executable} -m probebench.clients.scripted"
    agent = f"sh -c 'tee {transcript} | {scripted}'"
    for name, client in (("a", agent), ("b", scripted)):
        words = ("session", "--config", DEVELOPMENT, "--output", tmp_path / name)
        assert run(*words, "--agent", client).returncode == 0
    code, found = verified(tmp_path / "a", "--transcript", transcript)
    assert code == 0
    assert found["checks"][-1]["property"] == "transcript"
    code, found = verified(tmp_path / "b", "--transcript", transcript)
    assert (code, found["failed_artifact"]) == (3, "session.json")
