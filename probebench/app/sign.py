"""Make keys, and sign folders that verify."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from probebench.app.printing import print_answer, spelled
from probebench.app.rig import Rig, machine_rig
from probebench.app.signature import SIGNATURE, Signature, key_sha256, read_signature, signed_bytes
from probebench.app.streams import Printing
from probebench.app.verify import verify_store
from probebench.host import keys
from probebench.host.filesystem import Filesystem
from probebench.host.folder import is_folder
from probebench.host.keys import SigningKey
from probebench.host.store import Store
from probebench.kernel.canonical import encode, sha256_hex
from probebench.kernel.errors import ArtifactError, ExitCode, OperatorError
from probebench.kernel.turn import MANIFEST, STUDY, TASKS


@dataclass(frozen=True)
class Signed:
    """What a folder was signed as just now."""

    key_sha256: str
    manifest_sha256: str
    head_sha256: str


def keygen(path: Path, printing: Printing) -> ExitCode:
    """Make a key: its private half in ``path``, its public one beside it."""
    if os.path.lexists(path.parent / STUDY):
        raise OperatorError(
            f"the key {str(path)!r} would lie in a session folder, which is given away; "
            "name a file elsewhere"
        )
    key = key_sha256(keys.make_key(path, Filesystem()))
    private, public = spelled(path), spelled(keys.public_path(path))
    print_answer(
        [f"private key: {private}", f"public key: {public}", f"key: sha256:{key}"],
        {"private_key": private, "public_key": public, "key_sha256": key},
        printing,
    )
    return ExitCode.COMPLETE


def sign(folder: Path, key_path: Path, printing: Printing) -> ExitCode:
    """Verify a folder and sign its manifest."""
    key = keys.read_signing_key(key_path)
    signed = sign_folder(machine_rig(), folder, key)
    print_answer(
        [f"signed: {spelled(folder)}, by key sha256:{signed.key_sha256}"],
        {"folder": spelled(folder), **asdict(signed)},
        printing,
    )
    return ExitCode.COMPLETE


def sign_folder(rig: Rig, folder: Path, key: SigningKey) -> Signed:
    """Add signature.json to a complete folder that verifies and has none.

    Raises ArtifactError where the folder does not verify, OperatorError where
    there is none, it is signed already or lies within another session,
    FolderLockedError, HostError.
    """
    _require_outermost(folder)
    with Store.open(folder, rig.filesystem) as store:
        _tidy(store)
        if store.exists(SIGNATURE):
            store.sync()  # a kill may have left it in the page cache alone
            raise OperatorError(_already_signed(store, folder))
        verdict = verify_store(rig, store, folder)
        if (failure := verdict.failure) is not None:
            sentence = f"{failure.sentence}; only a session that verifies is signed"
            raise ArtifactError(failure.artifact, sentence)
        manifest = store.read(MANIFEST)
        if sha256_hex(manifest) != verdict.manifest_sha256:
            raise ArtifactError(MANIFEST, "it has changed since it was verified a moment ago")
        signature = Signature(key.public_key, key.sign(signed_bytes(manifest)))
        store.publish(SIGNATURE, encode(signature.document(manifest)))
    return Signed(key_sha256(key.public_key), verdict.manifest_sha256, verdict.head_sha256)


def _require_outermost(folder: Path) -> None:
    if not is_folder(folder):
        raise OperatorError(
            f"there is no session folder {str(folder)!r} to sign; give the folder of a session"
        )
    real = Path(os.path.realpath(folder))
    if f"{real.parent.name}/" == TASKS and (real.parents[1] / STUDY).exists():
        raise OperatorError(
            f"the folder {str(folder)!r} is a part of another session, whose manifest covers it; "
            f"sign {str(real.parents[1])!r}"
        )


def _tidy(store: Store) -> None:
    """Take away what an earlier signing left when it was killed."""
    store.finish(SIGNATURE)
    store.discard_temporary(SIGNATURE)


def _already_signed(store: Store, folder: Path) -> str:
    data, manifest = store.read(SIGNATURE), store.read(MANIFEST)
    key = key_sha256(read_signature(data, manifest).public_key)
    return (
        f"the folder {str(folder)!r} is signed already, by key sha256:{key}; "
        "a signature is not replaced: sign a copy without signature.json"
    )
