"""What was kept outside a folder, and the signature that it carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probebench.app.signature import SIGNATURE, key_sha256, read_signature, signed_bytes
from probebench.host import keys
from probebench.kernel.errors import ArtifactError


@dataclass(frozen=True)
class Witnesses:
    """What was kept outside a folder, to be compared with it.

    head: the head digest that was noted when the session ended.
    public_key: the 32 bytes of the key that must have signed the manifest.
    transcript: digests of the messages that a client received, in order.
    """

    head: str | None = None
    public_key: bytes | None = None
    transcript: Sequence[str] | None = None


@dataclass(frozen=True)
class SignedBy:
    """Whose signature a folder carries.

    computed: the signature was found to be that key's, of this manifest.
    expected: the key is the one that was asked for.
    """

    key_sha256: str
    computed: bool
    expected: bool

    def __str__(self) -> str:
        """In words."""
        trust = "the expected one" if self.expected else "not checked against a key"
        doubt = "" if self.computed else "; nor computed: cryptography is not installed"
        return f"signed by key sha256:{self.key_sha256} ({trust}{doubt})"


def require_signature(data: bytes, manifest: bytes, expected: bytes | None) -> SignedBy:
    """Check the bytes of signature.json against those of manifest.json.

    expected: the 32 bytes of the key that must have signed, or None for any.
    Raises ArtifactError; OperatorError where a key is expected and the extra
    ``sign`` is not installed.
    """
    signature = read_signature(data, manifest)
    signed_by = SignedBy(
        key_sha256(signature.public_key), keys.can_sign(), signature.public_key == expected
    )
    if expected is not None:
        keys.require_cryptography()
        if not signed_by.expected:
            raise ArtifactError(
                SIGNATURE,
                f"it is by key sha256:{signed_by.key_sha256}, not sha256:{key_sha256(expected)}",
            )
    if signed_by.computed and not keys.is_signed_by(
        signature.public_key, signature.value, signed_bytes(manifest)
    ):
        raise ArtifactError(SIGNATURE, "the signature is not that of the key that it names")
    return signed_by
