"""signature.json: a key that vouches for a manifest, beside it and not listed in it."""

from __future__ import annotations

from dataclasses import dataclass

from probebench.kernel.canonical import Json, decode, digest, sha256_hex
from probebench.kernel.errors import ArtifactError

SIGNATURE = "signature.json"
SIGNATURE_FORMAT = "probebench.signature/1"
ALGORITHM = "ed25519"
# No other use of the same key can be taken for the signature of a manifest.
DOMAIN = b"probebench.manifest.v1\0"

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64
# RFC 8410: what stands before the 32 bytes of an Ed25519 key in its DER form.
DER_PREFIX = bytes.fromhex("302a300506032b6570032100")


@dataclass(frozen=True)
class Signature:
    """An Ed25519 signature (RFC 8032) with the key that made it.

    public_key: 32 bytes; value: 64 bytes.
    """

    public_key: bytes
    value: bytes

    def document(self, manifest: bytes) -> dict[str, Json]:
        """The content of signature.json over these bytes of manifest.json."""
        content = {
            "format": SIGNATURE_FORMAT,
            "algorithm": ALGORITHM,
            "key_sha256": key_sha256(self.public_key),
            "public_key": self.public_key.hex(),
            "manifest_sha256": sha256_hex(manifest),
            "signature": self.value.hex(),
        }
        # Tells a damaged signature from another one where nothing can compute it.
        return {**content, "self_sha256": digest(content)}


def signed_bytes(manifest: bytes) -> bytes:
    """What is signed: the domain, then every byte of manifest.json."""
    return DOMAIN + manifest


def key_sha256(public_key: bytes) -> str:
    """SHA-256 of a public key in its DER form, as other tools compute it."""
    return sha256_hex(DER_PREFIX + public_key)


def read_signature(data: bytes, manifest: bytes) -> Signature:
    """Read signature.json; whether its signature is right is not looked at.

    Raises ArtifactError for bytes that are not those of a signature of this
    manifest.
    """
    try:
        document = decode(data)
        signature = Signature(
            _exactly(document["public_key"], PUBLIC_KEY_BYTES),
            _exactly(document["signature"], SIGNATURE_BYTES),
        )
    except (ValueError, KeyError, TypeError) as error:
        sentence = f"it cannot be read as a signature ({error})"
        raise ArtifactError(SIGNATURE, sentence) from None
    expected = signature.document(manifest)
    if document != expected:
        raise ArtifactError(SIGNATURE, _difference(document, expected))
    return signature


def _exactly(text: str, count: int) -> bytes:
    value = bytes.fromhex(text)
    if len(value) != count:
        raise ValueError(f"{len(value)} bytes stand where {count} are expected")
    return value


def _difference(document: dict[str, Json], expected: dict[str, Json]) -> str:
    if document.keys() != expected.keys():
        return f"the fields are not exactly {', '.join(sorted(expected))}"
    if document["manifest_sha256"] != expected["manifest_sha256"]:
        return "it is the signature of another manifest, or the manifest has changed since"
    name = next(name for name in expected if document[name] != expected[name])
    return f"{name} is not what the rest of it comes to"
