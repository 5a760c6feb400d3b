"""The document of a signature: canonical, bound to one manifest, closed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from probebench.app.signature import Signature, key_sha256, read_signature, signed_bytes
from probebench.host.keys import is_signed_by
from probebench.kernel.canonical import decode, digest, encode
from probebench.kernel.errors import ArtifactError

MANIFEST = b'{"format":"probebench.manifest/1"}\n'
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
SIGNATURE = Signature(PUBLIC, KEY.sign(signed_bytes(MANIFEST)))
DATA = encode(SIGNATURE.document(MANIFEST))
FIELDS = {name: st.text() | st.just(value) for name, value in decode(DATA).items()}
FIELDS["signature"] = st.text() | st.binary(min_size=64, max_size=64).map(bytes.hex)


def refusal(data: bytes, manifest: bytes = MANIFEST) -> str:
    with pytest.raises(ArtifactError) as caught:
        read_signature(data, manifest)
    assert caught.value.artifact == "signature.json"
    return str(caught.value)


def test_what_is_written_is_read_back() -> None:
    assert read_signature(DATA, MANIFEST) == SIGNATURE


def test_every_changed_bit_is_refused_without_computing_the_signature() -> None:
    for position in range(len(DATA)):
        for bit in range(8):
            changed = bytearray(DATA)
            changed[position] ^= 1 << bit
            refusal(bytes(changed))


def test_the_key_has_the_digest_that_other_tools_give_it() -> None:
    """`openssl pkey -pubin -in key.pub -outform DER | sha256sum` prints the same."""
    der = KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert key_sha256(PUBLIC) == sha256(der).hexdigest()


def test_the_signature_of_the_bare_manifest_is_none() -> None:
    assert is_signed_by(PUBLIC, SIGNATURE.value, signed_bytes(MANIFEST))
    assert not is_signed_by(PUBLIC, KEY.sign(MANIFEST), signed_bytes(MANIFEST))


def test_a_signature_of_another_manifest_says_so() -> None:
    assert "another manifest" in refusal(DATA, MANIFEST + b"\n")


def resealed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The document after a change, with a digest of its own that fits again."""
    document = decode(DATA)
    del document["self_sha256"]
    change(document)
    return encode({**document, "self_sha256": digest(document)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="probebench.signature/2"), "format"),
        (lambda d: d.update(algorithm="none"), "algorithm"),
        (lambda d: d.update(key_sha256="0" * 64), "key_sha256"),
        (lambda d: d.update(signature="00" * 63), "63 bytes"),
        (lambda d: d.update(public_key="00" * 33), "33 bytes"),
        (lambda d: d.update(public_key=PUBLIC.hex().upper()), "public_key"),
        (lambda d: d.update(signature=7), "cannot be read"),
        (lambda d: d.update(note="x"), "fields"),
        (lambda d: d.pop("algorithm"), "fields"),
        (lambda d: d.pop("signature"), "cannot be read"),
    ],
)
def test_a_document_of_another_shape_is_refused(
    change: Callable[[dict[str, Any]], object], words: str
) -> None:
    assert words in refusal(resealed(change))


@pytest.mark.parametrize("data", [b"", b"[]\n", b"null\n", b"{}", DATA[:-1], DATA + b"\n"])
def test_bytes_that_are_no_document_are_refused(data: bytes) -> None:
    assert "cannot be read" in refusal(data)


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.binary().map(bytes.hex),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(FIELDS)), inner),
    max_leaves=12,
)


@given(data=st.binary() | ANY_JSON.map(encode) | st.fixed_dictionaries(FIELDS).map(encode))
def test_whatever_stands_there_is_refused_by_its_name(data: bytes) -> None:
    refusal(data)
