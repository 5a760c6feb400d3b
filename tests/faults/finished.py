"""Finished folders that a test changes, and what verification says of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probebench.app import seal
from probebench.app.verify import Verdict, verify_folder
from probebench.kernel import turn as records
from probebench.kernel.canonical import decode, encode, sha256_hex
from tests.environments.test_conformance import CASES
from tests.journals import record_paths
from tests.rigs import constant_rig

TOY, NESTED, OPTICAL = "thermometer", "breeder with a session inside", "optical"
SESSIONS = {TOY: CASES[TOY], NESTED: CASES[NESTED], OPTICAL: CASES["optical assisted"]}
Change = Callable[[Any], None]
# Made once, because a sweep verifies ten thousand folders.
RIG = constant_rig()


def verdict_of(folder: Path) -> Verdict:
    return verify_folder(RIG, folder)


def require_refused(folder: Path, artifact: str) -> None:
    """The folder must be refused, and this artifact named."""
    failure = verdict_of(folder).failure
    assert failure is not None, f"the change of {artifact} passes"
    assert failure.artifact == artifact, str(failure)


@contextmanager
def restored(folder: Path) -> Iterator[None]:
    """Put a folder back as it was."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    try:
        yield
    finally:
        shutil.rmtree(folder)
        copy.rename(folder)


def edited(folder: Path, name: str, change: Change) -> None:
    """Change the document of one file, which stays canonical."""
    path = folder / name
    document = decode(path.read_bytes())
    change(document)
    path.write_bytes(encode(document))


def set_field(*path: str | int, value: Any) -> Change:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def resealed(folder: Path) -> None:
    """Recompute every hash of the manifest, and its own digest."""
    edited(folder, "manifest.json", lambda manifest: _reseal(folder, manifest))
    resealed_self(folder)


def _reseal(folder: Path, manifest: Any) -> None:
    for name in manifest["files"]:
        manifest["files"][name] = seal.file_entry((folder / name).read_bytes())


def resealed_self(folder: Path) -> None:
    """Recompute the manifest's own digest alone."""
    path = folder / "manifest.json"
    manifest = decode(path.read_bytes())
    manifest.pop("self_sha256")
    path.write_bytes(encode({**manifest, "self_sha256": sha256_hex(encode(manifest))}))


def rechained(folder: Path) -> None:
    """Link every record anew, from the root on, as a forger with the nonce can."""
    nonce = bytes.fromhex(decode((folder / "session.json").read_bytes())["nonce"])
    head = records.chain_root(nonce, (folder / "study.json").read_bytes())
    for path in record_paths(folder):
        edited(folder, str(path.relative_to(folder)), set_field("previous_sha256", value=head))
        head = sha256_hex(path.read_bytes())
    edited(folder, "evaluator.json", set_field("head_sha256", value=head))
    edited(folder, "manifest.json", set_field("head_sha256", value=head))


def following(folder: Path, name: str) -> str:
    """The record after this one in the chain, or the name itself where none is."""
    names = ["study.json", *(str(path.relative_to(folder)) for path in record_paths(folder))]
    if name not in names[:-1]:
        return name
    return names[names.index(name) + 1]
