"""Keys as files: private, whole, never replaced."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from probebench.host import keys
from probebench.host.filesystem import Filesystem
from probebench.kernel.errors import HostError, OperatorError
from tests.rigs import Steps

PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8


@pytest.fixture
def key(tmp_path: Path) -> Path:
    keys.make_key(tmp_path / "key", Filesystem())
    return tmp_path / "key"


def test_the_two_files_are_the_halves_of_one_key(key: Path) -> None:
    private = keys.read_signing_key(key)
    assert keys.read_public_key(keys.public_path(key)) == private.public_key
    assert keys.is_signed_by(private.public_key, private.sign(b"message"), b"message")
    assert not keys.is_signed_by(private.public_key, private.sign(b"message"), b"messagf")


def test_only_the_public_half_is_for_others(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    assert keys.public_path(key).stat().st_mode & 0o777 == 0o644


def test_a_key_file_is_in_the_formats_of_other_tools(key: Path) -> None:
    assert key.read_text().startswith("-----BEGIN PRIVATE KEY-----\n")
    assert keys.public_path(key).read_text().startswith("-----BEGIN PUBLIC KEY-----\n")


def test_two_keys_differ(tmp_path: Path) -> None:
    made = {keys.make_key(tmp_path / name, Filesystem()) for name in "abc"}
    assert len(made) == 3


def test_both_halves_are_on_the_disk_before_they_are_told(tmp_path: Path) -> None:
    steps = Steps()
    keys.make_key(tmp_path / "key", steps)
    each = ["open_temporary", "write", "fsync_file", "fsync_folder"]
    assert [step for step, _ in steps.seen] == each * 2


@pytest.mark.parametrize("taken", ["key", "key.pub"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_no_file_is_replaced(taken: str, kind: str, tmp_path: Path) -> None:
    place = tmp_path / taken
    place.symlink_to("nowhere") if kind == "link" else place.write_text("precious")
    with pytest.raises(OperatorError, match="exists and is kept"):
        keys.make_key(tmp_path / "key", Filesystem())
    assert list(tmp_path.iterdir()) == [place]


def test_a_file_that_appears_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    class Appears(Filesystem):
        def before(self, step: str, name: str) -> None:
            Path(name).write_text("precious")

    with pytest.raises(HostError, match="File exists"):
        keys.make_key(tmp_path / "key", Appears())
    assert (tmp_path / "key").read_text() == "precious"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"no folder .*nowhere"):
        keys.make_key(tmp_path / "nowhere" / "key", Filesystem())


# -- keys that are not used ------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660, 0o644, 0o777])
def test_a_private_key_that_others_can_reach_is_refused(mode: int, key: Path) -> None:
    key.chmod(mode)
    with pytest.raises(OperatorError, match=f"mode {mode:04o}"):
        keys.read_signing_key(key)


def test_a_private_key_that_not_even_we_can_change_is_fine(key: Path) -> None:
    key.chmod(0o400)
    assert keys.read_signing_key(key).public_key


def written(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o600)


def other_algorithm(path: Path) -> None:
    plain = serialization.NoEncryption()
    written(path, ec.generate_private_key(ec.SECP256R1()).private_bytes(PEM, PKCS8, plain))


def encrypted(path: Path) -> None:
    lock = serialization.BestAvailableEncryption(b"passphrase")
    written(path, Ed25519PrivateKey.generate().private_bytes(PEM, PKCS8, lock))


def public(path: Path) -> None:
    written(path, keys.public_path(path).read_bytes())


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "of another algorithm": (other_algorithm, "not an Ed25519 key"),
    "encrypted": (encrypted, "is encrypted"),
    "public": (public, "is no private key"),
    "cut": (lambda path: written(path, path.read_bytes()[:60]), "is no private key"),
    "empty": (lambda path: written(path, b""), "is no private key"),
    "a link": (a_link, "no link"),
    "a FIFO": (a_fifo, "not a regular file"),
    "a folder": (a_folder, "not a regular file"),
    "missing": (Path.unlink, "No such file"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_private_key_of_ours_is_refused(kind: str, key: Path) -> None:
    change, words = REFUSED[kind]
    change(key)
    with pytest.raises(OperatorError, match=words) as caught:
        keys.read_signing_key(key)
    assert "passphrase" not in str(caught.value) or kind == "encrypted"


def other_public(path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    path.write_bytes(other.public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_public, "not an Ed25519 key"),
        (lambda path: path.write_bytes(path.with_name("key").read_bytes()), "is no public key"),
        (lambda path: path.write_bytes(b"\0"), "is no public key"),
        (Path.unlink, "No such file"),
    ],
)
def test_what_is_no_public_key_of_ours_is_refused(
    change: Callable[[Path], object], words: str, key: Path
) -> None:
    path = keys.public_path(key)
    change(path)
    with pytest.raises(OperatorError, match=words):
        keys.read_public_key(path)


# -- without the extra -------------------------------------------------------------------------


def test_without_cryptography_one_sentence_says_how_to_install_it(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    calls: list[Callable[[], object]] = [
        lambda: keys.make_key(key.with_name("new"), Filesystem()),
        lambda: keys.read_signing_key(key),
        lambda: keys.read_public_key(keys.public_path(key)),
    ]
    for call in calls:
        with pytest.raises(OperatorError, match="uv sync --extra sign"):
            call()
    assert not key.with_name("new").exists()
