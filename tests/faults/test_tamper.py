"""A finished folder that was changed in any way is refused, and the artifact is named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from probebench.app import seal
from probebench.app.rig import Rig
from probebench.app.verify import Verdict, verify_folder
from probebench.kernel import turn as records
from probebench.kernel.canonical import decode, encode, sha256_hex
from tests.environments.test_conformance import CASES
from tests.journals import record_paths
from tests.rigs import constant_rig, folder_bytes, writable_again

TOY, NESTED, OPTICAL = "thermometer", "breeder with a session inside", "optical assisted"


def quick_rig() -> Rig:
    """Asks the machine about itself once, not once a folder."""
    rig = constant_rig()
    runtime, display = rig.runtime(), rig.display_runtime()
    return replace(rig, runtime=lambda: runtime, display_runtime=lambda: display)


RIG = quick_rig()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One finished session of each kind; tests put back what they change."""
    root = tmp_path_factory.mktemp("finished")
    folders = {name: root / name.replace(" ", "-") for name in (TOY, NESTED, OPTICAL)}
    for name, folder in folders.items():
        CASES[name].run(folder)
        assert verify_folder(RIG, folder).verified
    return folders


def verdict_of(folder: Path) -> Verdict:
    return verify_folder(RIG, folder)


def require_refused(folder: Path, artifact: str) -> None:
    verdict = verdict_of(folder)
    assert verdict.failure is not None, f"the change of {artifact} passes"
    assert verdict.failure.artifact == artifact, str(verdict.failure)


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


def flip(folder: Path, name: str, positions: Iterator[int] | range, bits: int) -> int:
    """Change one byte at a time, and put it back.  Returns how many were tried."""
    path, tried = folder / name, 0
    data = path.read_bytes()
    descriptor = os.open(path, os.O_RDWR)
    try:
        for position in positions:
            os.pwrite(descriptor, bytes([data[position] ^ bits]), position)
            require_refused(folder, name)
            os.pwrite(descriptor, data[position : position + 1], position)
            tried += 1
    finally:
        os.close(descriptor)
    assert path.read_bytes() == data
    return tried


# -- bytes -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TOY, NESTED])
def test_every_changed_byte_of_a_toy_session_is_found(
    kind: str, finished: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tried = sum(
        flip(finished[kind], name, range(len(data)), 1 << (len(name) % 8))
        for name, data in folder_bytes(finished[kind]).items()
    )
    assert tried == sum(map(len, folder_bytes(finished[kind]).values()))
    with capsys.disabled():
        print(f"\n{kind}: {tried} changed bytes, all found")


def boundaries(data: bytes, stride: int) -> Iterator[int]:
    """Every bracket, quote and colon, the ends, and a dense sample of the rest."""
    for position, byte in enumerate(data):
        ends = position < 4 or position >= len(data) - 4
        if byte in b'{}[]":' or ends or position % stride == 0:
            yield position


def test_a_changed_byte_of_an_optical_session_is_found(
    finished: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished[OPTICAL]
    tried = sum(
        flip(folder, name, boundaries(data, 199), 0x04)
        for name, data in folder_bytes(folder).items()
    )
    with capsys.disabled():
        print(f"\noptical: {tried} changed bytes, all found")
    assert tried > 2000


@pytest.mark.parametrize("kind", [TOY, NESTED, OPTICAL])
def test_every_truncated_or_lengthened_file_is_found(kind: str, finished: dict[str, Path]) -> None:
    folder = finished[kind]
    for name, data in folder_bytes(folder).items():
        for changed in (b"", data[:-1], data[: len(data) // 2], data + b"\n", data + data):
            (folder / name).write_bytes(changed)
            require_refused(folder, name)
        (folder / name).write_bytes(data)
    assert verdict_of(folder).verified


# -- membership ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TOY, NESTED])
def test_every_removed_file_is_named(kind: str, finished: dict[str, Path]) -> None:
    folder = finished[kind]
    for name, data in folder_bytes(folder).items():
        (folder / name).unlink()
        require_refused(folder, name)
        (folder / name).write_bytes(data)


def test_two_files_that_change_places_are_found(finished: dict[str, Path]) -> None:
    folder = finished[TOY]
    files = folder_bytes(folder)
    names = sorted(files)
    for first, second in pairwise(names):
        if files[first] == files[second]:
            continue
        (folder / first).write_bytes(files[second])
        (folder / second).write_bytes(files[first])
        verdict = verdict_of(folder)
        assert verdict.failure is not None
        assert verdict.failure.artifact in (first, second)
        (folder / first).write_bytes(files[first])
        (folder / second).write_bytes(files[second])


EXTRA = [
    "extra.json",
    "turns/turn_0099_input.json",
    "turns/turn_0001_fault.json",
    "turns/TURN_0001_INPUT.json",
    "STUDY.json",
    "source/extra.py",
    "turns/.turn_0001_input.json.publishing",
    "tasks/other/manifest.json",
    "turns/naïve.json",
]


@pytest.mark.parametrize("kind", [TOY, NESTED])
@pytest.mark.parametrize("name", EXTRA)
def test_an_added_file_is_found(kind: str, name: str, finished: dict[str, Path]) -> None:
    with restored(finished[kind]):
        path = finished[kind] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((finished[kind] / "study.json").read_bytes())
        verdict = verdict_of(finished[kind])
        assert verdict.failure is not None
        # Characters that no store writes are escaped in what is printed.
        assert name.isascii() is (verdict.failure.artifact == name)


def test_an_added_folder_is_found(finished: dict[str, Path]) -> None:
    for name in ("empty", "turns/empty", "tasks", "source/empty"):
        (finished[TOY] / name).mkdir()
        require_refused(finished[TOY], f"{name}/")
        (finished[TOY] / name).rmdir()


Replace = Callable[[Path], None]


def with_link_to_a_copy(path: Path) -> None:
    outside = path.parents[1] / f"outside-{path.name}"
    outside.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(outside)


def with_hard_link(path: Path) -> None:
    os.link(path, path.parents[1] / f"outside-{path.name}")


def with_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def with_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [with_link_to_a_copy, with_hard_link, with_fifo, with_folder])
@pytest.mark.parametrize("name", ["study.json", "manifest.json", "evaluator.json", "session.json"])
def test_what_is_no_plain_file_of_its_own_is_refused(
    change: Replace, name: str, finished: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "session"
    shutil.copytree(finished[TOY], folder)
    change(folder / name)
    verdict = verdict_of(folder)
    assert verdict.failure is not None
    assert verdict.failure.artifact.rstrip("/") == name


def test_a_finished_folder_verifies_elsewhere_and_read_only(
    finished: dict[str, Path], tmp_path: Path
) -> None:
    for name, folder in finished.items():
        moved = tmp_path / "elsewhere" / name
        shutil.copytree(folder, moved)
        before = folder_bytes(moved)
        with writable_again(moved):
            stamps = {path: path.stat().st_mtime_ns for path in moved.rglob("*")}
            assert verdict_of(moved).verified
            assert {path: path.stat().st_mtime_ns for path in moved.rglob("*")} == stamps
        assert folder_bytes(moved) == before


# -- forgers who also repair the manifest ------------------------------------------------


def resealed(folder: Path) -> None:
    """Recompute every hash of the manifest, and its own digest."""
    path = folder / "manifest.json"
    manifest = decode(path.read_bytes())
    manifest.pop("self_sha256")
    for name in manifest["files"]:
        manifest["files"][name] = seal.file_entry((folder / name).read_bytes())
    path.write_bytes(encode({**manifest, "self_sha256": sha256_hex(encode(manifest))}))


def edited(folder: Path, name: str, change: Callable[[Any], None]) -> None:
    path = folder / name
    document = decode(path.read_bytes())
    change(document)
    path.write_bytes(encode(document))


def rechained(folder: Path) -> None:
    """Link every record anew, from the root on, as a forger with the nonce can."""
    nonce = bytes.fromhex(decode((folder / "session.json").read_bytes())["nonce"])
    head = records.chain_root(nonce, (folder / "study.json").read_bytes())
    for path in record_paths(folder):
        name = str(path.relative_to(folder))
        edited(folder, name, set_field("previous_sha256", value=head))
        head = sha256_hex(path.read_bytes())
    edited(folder, "evaluator.json", lambda d: d.update(head_sha256=head))
    edited(folder, "manifest.json", lambda d: d.update(head_sha256=head))


def set_field(*path: str | int, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


FORGERIES = {
    "a better evaluation": (
        "evaluator.json",
        set_field("evaluation", "residual_wfe_nm_rms", value=0.1),
    ),
    "a smaller floor": (
        "evaluator.json",
        set_field("evaluation", "cramer_rao_floor_nm_rms", value=9.9),
    ),
    "fewer photons": ("evaluator.json", set_field("resources", "spent", "photons", value=0)),
    "another cause": ("evaluator.json", set_field("outcome", "cause", value="eof")),
    "another command": ("turns/turn_0003_input.json", set_field("received_base64", value="e30K")),
    "another estimate": (
        "turns/turn_0003_response.json",
        set_field("value", "value", "estimate_opd_nm", value=[0.0] * 6),
    ),
    "a smaller covariance": (
        "turns/turn_0003_response.json",
        set_field("value", "value", "covariance_nm2", 0, 0, value=1e-9),
    ),
    "another frame": (
        "turns/turn_0002_response.json",
        set_field("message", "observation", "electrons", 0, 0, value=1.5),
    ),
    "a smaller charge": (
        "turns/turn_0002_response.json",
        set_field("charge", "exposures", value=0),
    ),
    "no rejection": ("turns/turn_0001_response.json", set_field("rejection", value=None)),
    "another nonce": ("session.json", set_field("nonce", value="00" * 32)),
    "another wavefront": (
        "study.json",
        set_field("config", "fixture", "wavefront_seed", value="00" * 16),
    ),
    "more photons": (
        "study.json",
        set_field("config", "detector", "photons_per_exposure", value=10**6),
    ),
    "another source": ("source/probebench_stand_in.py", None),
}


@pytest.mark.parametrize("chain_too", [False, True], ids=["resealed", "rechained"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forger_who_repairs_the_hashes_is_still_found(
    forgery: str, finished: dict[str, Path], *, chain_too: bool
) -> None:
    folder = finished[OPTICAL]
    name, change = FORGERIES[forgery]
    with restored(folder):
        if change is None:
            (folder / name).write_bytes(b"# other source\n")
        else:
            edited(folder, name, change)
        if chain_too:
            rechained(folder)
        resealed(folder)
        verdict = verdict_of(folder)
        assert verdict.failure is not None


@pytest.mark.parametrize("entry", ["../outside.json", "/etc/hostname", "turns/../study.json", ""])
def test_a_manifest_that_points_elsewhere_is_refused(entry: str, finished: dict[str, Path]) -> None:
    folder = finished[TOY]
    with restored(folder):
        edited(
            folder,
            "manifest.json",
            lambda d: d["files"].update({entry: {"bytes": 0, "sha256": ""}}),
        )
        resealed_self(folder)
        require_refused(folder, "manifest.json")


@pytest.mark.parametrize(
    "value", [[], 3, None, "x", {"turns": 1}], ids=["list", "number", "null", "text", "object"]
)
@pytest.mark.parametrize("field", ["files", "sessions", "outcome", "head_sha256", "format"])
def test_a_manifest_of_another_shape_is_refused_not_stumbled_over(
    field: str, value: Any, finished: dict[str, Path]
) -> None:
    folder = finished[TOY]
    with restored(folder):
        edited(folder, "manifest.json", set_field(field, value=value))
        resealed_self(folder)
        assert verdict_of(folder).failure is not None


def resealed_self(folder: Path) -> None:
    """Recompute the manifest's own digest alone."""
    path = folder / "manifest.json"
    manifest = decode(path.read_bytes())
    manifest.pop("self_sha256")
    path.write_bytes(encode({**manifest, "self_sha256": sha256_hex(encode(manifest))}))


# -- the stated limit, and the witness that reaches beyond it ----------------------------------


def test_a_changed_duration_passes_unless_the_head_was_noted_elsewhere(
    finished: dict[str, Path],
) -> None:
    folder = finished[TOY]
    head = decode((folder / "manifest.json").read_bytes())["head_sha256"]
    with restored(folder):
        edited(folder, "turns/turn_0001_input.json", set_field("timing", "input_wait_s", value=0.5))
        rechained(folder)
        # The witness in the next request is of the changed record, so replay sees it.
        assert verdict_of(folder).failure is not None
    last = record_paths(folder)[-1]
    with restored(folder):
        edited(folder, str(last.relative_to(folder)), set_field("timing", "driver_s", value=9.0))
        rechained(folder)
        resealed(folder)
        assert verdict_of(folder).verified
        verdict = verify_folder(RIG, folder, expect_head=head)
        assert verdict.failure is not None
        assert "expected" in str(verdict.failure)


# -- broken verifiers, which the tests above must catch -----------------------------------------


def test_without_the_recomputed_evaluation_a_forged_one_would_pass(
    finished: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from probebench.app import verify

    folder = finished[OPTICAL]
    monkeypatch.setattr(verify._Verification, "same", lambda *_: True)
    with restored(folder):
        change = set_field("evaluation", "residual_wfe_nm_rms", value=0.1)
        edited(folder, "evaluator.json", change)
        resealed(folder)
        assert verdict_of(folder).verified


def test_without_the_hashes_a_changed_source_would_pass(
    finished: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished[TOY]
    monkeypatch.setattr(seal, "file_entry", lambda data: {"bytes": 0, "sha256": ""})
    monkeypatch.setattr("probebench.app.verify.sha256_hex", lambda data: "")
    with restored(folder):
        manifest = decode((folder / "manifest.json").read_bytes())
        for entry in manifest["files"].values():
            entry.update(bytes=0, sha256="")
        edited(folder, "study.json", set_field("source", "probebench_stand_in.py", value=""))
        (folder / "manifest.json").write_bytes(encode(manifest))
        resealed_self(folder)
        (folder / "source/probebench_stand_in.py").write_bytes(b"# changed\n")
        failure = verdict_of(folder).failure
        assert failure is None or not failure.artifact.startswith("source/")
