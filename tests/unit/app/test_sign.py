"""Folders that are signed, and what verification says of them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from probebench.app import sign
from probebench.app.sign import sign_folder
from probebench.app.signature import SIGNATURE, Signature, signed_bytes
from probebench.app.verify import Verdict, verify_folder, verify_store
from probebench.host import keys
from probebench.host.filesystem import Filesystem
from probebench.host.keys import SigningKey
from probebench.kernel.canonical import decode, encode
from probebench.kernel.errors import (
    ArtifactError,
    FolderLockedError,
    HostError,
    OperatorError,
    UnfinishedError,
)
from tests.environments.test_conformance import CASES
from tests.faults.finished import edited, resealed, set_field
from tests.rigs import KilledError, Steps, constant_rig, folder_bytes

TOY = CASES["thermometer"]
NESTED = CASES["breeder with a session inside"]


def a_key(folder: Path, name: str = "key") -> SigningKey:
    keys.make_key(folder / name, Filesystem())
    return keys.read_signing_key(folder / name)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return a_key(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return a_key(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    TOY.run(tmp_path / "session")
    return tmp_path / "session"


@pytest.fixture
def signed(finished: Path, key: SigningKey) -> Path:
    sign_folder(constant_rig(), finished, key)
    return finished


def verdict_of(folder: Path, public_key: bytes | None = None) -> Verdict:
    return verify_folder(constant_rig(), folder, public_key=public_key)


def refused(folder: Path, public_key: bytes | None = None) -> str:
    """The artifact that a folder is refused for."""
    failure = verdict_of(folder, public_key).failure
    assert failure is not None, "the folder passes"
    return failure.artifact


# -- what a signature is ---------------------------------------------------------------


def test_a_signature_is_one_more_file_and_changes_no_other(finished: Path, key: SigningKey) -> None:
    before = folder_bytes(finished)
    found = sign_folder(constant_rig(), finished, key)
    after = folder_bytes(finished)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {SIGNATURE}
    assert (finished / SIGNATURE).stat().st_mode & 0o777 == 0o600
    verdict = verdict_of(finished)
    assert found.manifest_sha256 == verdict.manifest_sha256
    assert found.head_sha256 == verdict.head_sha256


def test_a_signed_folder_passes_with_its_key_and_without_any(signed: Path, key: SigningKey) -> None:
    for public_key in (None, key.public_key):
        verdict = verdict_of(signed, public_key)
        assert verdict.verified, verdict.failure
        assert verdict.signed_by is not None
        assert verdict.signed_by.computed
        assert verdict.signed_by.expected is (public_key is not None)
        seen = dict(verdict.checks)["signature"]
        assert ("not checked against a key" in seen) is (public_key is None)


def test_signing_the_same_session_twice_gives_the_same_bytes(
    signed: Path, key: SigningKey, tmp_path: Path
) -> None:
    TOY.run(tmp_path / "again")
    sign_folder(constant_rig(), tmp_path / "again", key)
    assert folder_bytes(tmp_path / "again") == folder_bytes(signed)


def test_the_signature_of_another_key_is_refused(signed: Path, other_key: SigningKey) -> None:
    assert refused(signed, other_key.public_key) == SIGNATURE


def test_a_missing_signature_is_refused_where_a_key_is_given(
    finished: Path, key: SigningKey
) -> None:
    assert refused(finished, key.public_key) == SIGNATURE
    assert verdict_of(finished).signed_by is None


def test_an_unfinished_session_is_unfinished_whatever_key_is_given(
    finished: Path, key: SigningKey
) -> None:
    (finished / "manifest.json").unlink()
    assert isinstance(verdict_of(finished, key.public_key).failure, UnfinishedError)


# -- what is changed afterwards --------------------------------------------------------


def test_a_session_made_anew_does_not_fit_the_old_signature(signed: Path) -> None:
    edited(signed, "evaluator.json", set_field("outcome", "cause", value="better"))
    resealed(signed)
    assert refused(signed) == SIGNATURE


def test_every_changed_byte_of_a_signed_session_is_named(signed: Path, key: SigningKey) -> None:
    """The signature and the manifest; the sweep of tests/faults covers the others."""
    for name in (SIGNATURE, "manifest.json"):
        path = signed / name
        data = path.read_bytes()
        for position in range(len(data)):
            changed = bytearray(data)
            changed[position] ^= 1 << (position % 8)
            path.write_bytes(bytes(changed))
            assert refused(signed, key.public_key if position % 2 else None) == name
        path.write_bytes(data)
    assert verdict_of(signed, key.public_key).verified


def test_a_signature_that_is_not_that_of_its_key_is_refused(
    signed: Path, key: SigningKey, other_key: SigningKey
) -> None:
    """Well formed in every field, and made with another key than it names."""
    manifest = (signed / "manifest.json").read_bytes()
    forged = Signature(key.public_key, other_key.sign(signed_bytes(manifest)))
    (signed / SIGNATURE).write_bytes(encode(forged.document(manifest)))
    assert refused(signed) == SIGNATURE
    assert refused(signed, key.public_key) == SIGNATURE


def test_a_verifier_that_does_not_compute_the_signature_would_pass_a_forged_one(
    signed: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = (signed / "manifest.json").read_bytes()
    forged = Signature(key.public_key, bytes(64))
    (signed / SIGNATURE).write_bytes(encode(forged.document(manifest)))
    monkeypatch.setattr(keys, "is_signed_by", lambda *_: True)
    assert verdict_of(signed, key.public_key).verified


def with_a_link(path: Path) -> None:
    path.rename(path.parents[1] / "elsewhere")
    path.symlink_to(path.parents[1] / "elsewhere")


def with_a_second_name(path: Path) -> None:
    os.link(path, path.parents[1] / "elsewhere")


def with_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def with_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "change", [with_a_link, with_a_second_name, with_a_fifo, with_a_folder, truncated, emptied]
)
def test_a_signature_that_is_no_plain_whole_file_is_refused(
    change: Callable[[Path], None], signed: Path
) -> None:
    change(signed / SIGNATURE)
    assert refused(signed).rstrip("/") == SIGNATURE


def test_a_signature_may_not_stand_in_the_manifest(signed: Path) -> None:
    data = (signed / SIGNATURE).read_bytes()
    edited(signed, "manifest.json", lambda d: d["files"].update({SIGNATURE: {}}))
    resealed(signed)
    (signed / SIGNATURE).write_bytes(data)
    assert refused(signed) == "manifest.json"


@pytest.mark.parametrize("name", ["Signature.json", "signature.json.bak", "turns/signature.json"])
def test_a_signature_of_another_name_is_a_stranger(name: str, signed: Path) -> None:
    (signed / SIGNATURE).rename(signed / name)
    assert refused(signed) == name


def test_a_signature_in_an_unfinished_folder_is_a_stranger(signed: Path) -> None:
    (signed / "manifest.json").unlink()
    assert refused(signed) == SIGNATURE
    with pytest.raises(ArtifactError, match=r"signature\.json"):
        TOY.run(signed, resume=True)


# -- sessions within sessions ------------------------------------------------------------


@pytest.fixture
def nested(tmp_path: Path) -> tuple[Path, Path]:
    """A session and the one within it."""
    NESTED.run(tmp_path / "outer")
    (inner,) = (tmp_path / "outer" / "tasks").iterdir()
    return tmp_path / "outer", inner


def test_the_signature_of_a_session_covers_the_one_within_it(
    nested: tuple[Path, Path], key: SigningKey
) -> None:
    outer, inner = nested
    sign_folder(constant_rig(), outer, key)
    assert verdict_of(outer, key.public_key).verified
    (inner / "evaluator.json").write_bytes(b"{}\n")
    assert refused(outer, key.public_key) == f"tasks/{inner.name}/evaluator.json"


def test_a_session_within_another_is_not_signed_by_itself(
    nested: tuple[Path, Path], key: SigningKey, tmp_path: Path
) -> None:
    outer, inner = nested
    with pytest.raises(OperatorError, match="part of another session"):
        sign_folder(constant_rig(), inner, key)
    shutil.copytree(inner, tmp_path / "copy")
    sign_folder(constant_rig(), tmp_path / "copy", key)
    shutil.copy(tmp_path / "copy" / SIGNATURE, inner)
    assert refused(outer) == f"tasks/{inner.name}/{SIGNATURE}"


# -- resumption ----------------------------------------------------------------------------


def test_resuming_a_signed_session_changes_nothing(signed: Path, key: SigningKey) -> None:
    before = folder_bytes(signed)
    assert TOY.run(signed, resume=True).already_complete
    assert folder_bytes(signed) == before
    assert verdict_of(signed, key.public_key).verified


# -- what is not signed --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["evaluator.json", "turns/turn_0001_input.json", "manifest.json"])
def test_a_session_that_does_not_verify_is_not_signed(
    name: str, finished: Path, key: SigningKey
) -> None:
    (finished / name).write_bytes(b"{}\n")
    before = folder_bytes(finished)
    with pytest.raises(ArtifactError, match="only a session that verifies is signed") as caught:
        sign_folder(constant_rig(), finished, key)
    assert caught.value.artifact == name
    assert folder_bytes(finished) == before


def test_an_unfinished_session_is_not_signed(finished: Path, key: SigningKey) -> None:
    (finished / "manifest.json").unlink()
    with pytest.raises(ArtifactError, match="unfinished"):
        sign_folder(constant_rig(), finished, key)
    assert not (finished / SIGNATURE).exists()


def test_a_link_in_the_folder_keeps_it_from_being_signed(finished: Path, key: SigningKey) -> None:
    with_a_link(finished / "study.json")
    with pytest.raises(ArtifactError, match=r"study\.json"):
        sign_folder(constant_rig(), finished, key)


@pytest.mark.parametrize("same", [True, False])
def test_a_signed_session_is_not_signed_again(
    signed: Path, key: SigningKey, other_key: SigningKey, *, same: bool
) -> None:
    before = folder_bytes(signed)
    with pytest.raises(OperatorError, match=f"signed already, by key sha256:{'[0-9a-f]' * 64};"):
        sign_folder(constant_rig(), signed, key if same else other_key)
    assert folder_bytes(signed) == before


def test_a_folder_that_is_not_there_is_not_signed(tmp_path: Path, key: SigningKey) -> None:
    with pytest.raises(OperatorError, match="there is no session folder"):
        sign_folder(constant_rig(), tmp_path / "nowhere", key)


class LockedMeanwhile(Steps):
    """Tries to verify while the signature is being written."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.refused = 0

    def before(self, step: str, name: str) -> None:
        try:
            verify_folder(constant_rig(), self.folder)
        except FolderLockedError:
            self.refused += 1


def test_the_folder_is_locked_from_verification_to_signature(
    finished: Path, key: SigningKey
) -> None:
    steps = LockedMeanwhile(finished)
    sign_folder(constant_rig(steps), finished, key)
    assert steps.refused >= 5


def test_a_manifest_that_changes_after_it_was_verified_is_not_signed(
    finished: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a program that asks for no lock."""

    def verified_and_changed(*given: Any) -> Verdict:
        verdict = verify_store(*given)
        (finished / "manifest.json").write_bytes(b"{}\n")
        return verdict

    monkeypatch.setattr(sign, "verify_store", verified_and_changed)
    with pytest.raises(ArtifactError, match="changed since it was verified"):
        sign_folder(constant_rig(), finished, key)
    assert not (finished / SIGNATURE).exists()


# -- kills and full disks --------------------------------------------------------------------


def test_a_signing_killed_at_any_step_is_done_by_the_next_one(
    finished: Path, key: SigningKey, tmp_path: Path
) -> None:
    whole = Steps()
    shutil.copytree(finished, tmp_path / "whole")
    sign_folder(constant_rig(whole), tmp_path / "whole", key)
    expected = folder_bytes(tmp_path / "whole")
    assert [step for step, _ in whole.seen] == [
        *("open_temporary", "write", "fsync_file", "link", "unlink", "fsync_folder")
    ]
    for fatal in range(len(whole.seen)):
        folder = tmp_path / f"cut-{fatal}"
        shutil.copytree(finished, folder)
        with pytest.raises(KilledError):
            sign_folder(constant_rig(Steps(fatal)), folder, key)
        linked = fatal > [step for step, _ in whole.seen].index("link")
        with pytest.raises(OperatorError, match="signed already") if linked else nullcontext():
            sign_folder(constant_rig(), folder, key)
        assert folder_bytes(folder) == expected
        assert verdict_of(folder, key.public_key).verified


def test_a_signature_that_a_kill_left_in_the_cache_is_made_durable(signed: Path) -> None:
    """Before it is said that the folder is signed."""
    steps = Steps()
    key = a_key(signed.parent)
    with pytest.raises(OperatorError, match="signed already"):
        sign_folder(constant_rig(steps), signed, key)
    assert ("fsync_folder", ".") in steps.seen


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_no_signing_left_is_not_removed(kind: str, finished: Path, key: SigningKey) -> None:
    stray = finished / ".signature.json.publishing"
    stray.mkdir() if kind == "folder" else stray.symlink_to("study.json")
    with pytest.raises(ArtifactError, match="does not belong"):
        sign_folder(constant_rig(), finished, key)
    assert os.path.lexists(stray)


class Failing(Filesystem):
    def __init__(self, step: str) -> None:
        self.fatal = step

    def before(self, step: str, name: str) -> None:
        if step == self.fatal:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["open_temporary", "write", "fsync_file", "link"])
def test_a_full_disk_gives_an_error_and_no_signature(
    step: str, finished: Path, key: SigningKey
) -> None:
    with pytest.raises(HostError, match="No space left"):
        sign_folder(constant_rig(Failing(step)), finished, key)
    assert not (finished / SIGNATURE).exists()
    sign_folder(constant_rig(), finished, key)
    assert verdict_of(finished, key.public_key).verified


# -- without the extra -------------------------------------------------------------------------


def test_without_cryptography_a_signed_session_passes_and_the_doubt_is_told(
    signed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    verdict = verdict_of(signed)
    assert verdict.verified, verdict.failure
    assert "cryptography is not installed" in dict(verdict.checks)["signature"]
    assert verdict.signed_by is not None
    assert not verdict.signed_by.computed


def test_without_cryptography_a_damaged_signature_is_still_found(
    signed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    data = (signed / SIGNATURE).read_bytes()
    value = decode(data)["signature"].encode()
    damaged = value[:-1] + (b"0" if value[-1:] != b"0" else b"1")
    (signed / SIGNATURE).write_bytes(data.replace(value, damaged))
    assert refused(signed) == SIGNATURE


def test_without_cryptography_no_key_is_checked_against(
    signed: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(OperatorError, match="uv sync --extra sign"):
        verdict_of(signed, key.public_key)
