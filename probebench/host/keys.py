"""Ed25519 keys as files, and what is done with them; needs the extra ``sign``."""

from __future__ import annotations

import importlib.util
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from probebench.host.filesystem import Filesystem
from probebench.host.folder import FILE_FLAGS, is_folder, opened_folder
from probebench.kernel.errors import OperatorError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_KEY_BYTES = 16 * 1024
PUBLIC_MODE = 0o644
INSTALL = (
    "signatures need the package cryptography, which is not installed; "
    "install it with `uv sync --extra sign`"
)


def can_sign() -> bool:
    """Whether the extra ``sign`` is installed."""
    return importlib.util.find_spec("cryptography") is not None


def require_cryptography() -> None:
    """Raise OperatorError where the extra ``sign`` is not installed."""
    if not can_sign():
        raise OperatorError(INSTALL)


@dataclass(frozen=True)
class SigningKey:
    """A private key.  public_key: the 32 bytes of its public half."""

    public_key: bytes
    _private: Ed25519PrivateKey

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature of ``message``; the same each time."""
        return self._private.sign(message)


def is_signed_by(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the key of these 32 bytes made this signature of ``message``."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


# -- making ------------------------------------------------------------------------


def public_path(path: Path) -> Path:
    """Where the public half of the key in ``path`` is written: KEY.pub."""
    return path.with_name(f"{path.name}.pub")


def make_key(path: Path, filesystem: Filesystem) -> bytes:
    """Draw a key and write both halves durably, as PEM; neither replaces a file.

    The private half has mode 0600.  Returns the 32 bytes of the public one.
    Raises OperatorError where either file exists or the folder does not, HostError.
    """
    require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not is_folder(path.parent):
        raise OperatorError(f"there is no folder {str(path.parent)!r} for the key; make it")
    for file in (path, public_path(path)):
        if os.path.lexists(file):
            raise OperatorError(f"the file {str(file)!r} exists and is kept; give another name")
    private = Ed25519PrivateKey.generate()
    private_pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public_pem = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # A private half without its public one is no loss: it can be computed.
    _write_new(path, private_pem, filesystem)
    _write_new(public_path(path), public_pem, filesystem, PUBLIC_MODE)
    return private.public_key().public_bytes_raw()


def _write_new(path: Path, data: bytes, steps: Filesystem, mode: int | None = None) -> None:
    """Write a file that must not exist, durably; its mode is 0600 without ``mode``."""
    name = str(path)
    with opened_folder(os.path.realpath(path.parent), str(path.parent)) as folder:
        descriptor = steps.open_temporary(folder, path.name, name)
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            steps.write(descriptor, data, name)
            steps.fsync_file(descriptor, name)
        finally:
            os.close(descriptor)
        steps.fsync_folder(folder, str(path.parent))


# -- reading -----------------------------------------------------------------------


def read_signing_key(path: Path) -> SigningKey:
    """Read a private key of ours, which nobody else may be able to read.

    Raises OperatorError for a link, a file that others can read, an encrypted
    key and whatever is no Ed25519 key.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _private_bytes(path)
    try:
        private = load_pem_private_key(data, password=None)
    except TypeError:
        raise OperatorError(
            f"the key {str(path)!r} is encrypted; "
            "give a copy without a passphrase, made with `openssl pkey`"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise OperatorError(
            f"the file {str(path)!r} is no private key; make one with `probebench keygen`"
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise OperatorError(
            f"the key {str(path)!r} is not an Ed25519 key; make one with `probebench keygen`"
        )
    return SigningKey(private.public_key().public_bytes_raw(), private)


def _private_bytes(path: Path) -> bytes:
    try:
        descriptor = os.open(path, FILE_FLAGS)
    except OSError as error:
        raise OperatorError(
            f"cannot read the key {str(path)!r}: {error.strerror}; give a file that is no link"
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OperatorError(f"the key {str(path)!r} is not a regular file; give one")
        if status.st_mode & 0o077:
            raise OperatorError(
                f"others may read the key {str(path)!r} (mode {stat.S_IMODE(status.st_mode):04o}); "
                "make a new one, or change its mode to 0600 if nobody has"
            )
        return os.read(descriptor, MAX_KEY_BYTES)
    finally:
        os.close(descriptor)


def read_public_key(path: Path) -> bytes:
    """The 32 bytes of the public key in a PEM file.  Raises OperatorError."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        with path.open("rb") as file:
            public = load_pem_public_key(file.read(MAX_KEY_BYTES))
    except OSError as error:
        raise OperatorError(
            f"cannot read the public key {str(path)!r}: {error.strerror}; give its PEM file"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise OperatorError(
            f"the file {str(path)!r} is no public key; give the one that `keygen` wrote, KEY.pub"
        ) from None
    if not isinstance(public, Ed25519PublicKey):
        raise OperatorError(f"the public key {str(path)!r} is not an Ed25519 key; give one")
    return public.public_bytes_raw()
