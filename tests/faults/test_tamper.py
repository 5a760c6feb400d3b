"""A finished folder that was changed in any way is refused, and the artifact is named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.finished import NESTED, OPTICAL, TOY, require_refused, restored, verdict_of
from tests.faults.share import Count
from tests.rigs import folder_bytes, writable_again


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
    kind: str, finished: dict[str, Path], count: Count
) -> None:
    tried = sum(
        flip(finished[kind], name, range(len(data)), 1 << (len(name) % 8))
        for name, data in folder_bytes(finished[kind]).items()
    )
    assert tried == sum(map(len, folder_bytes(finished[kind]).values()))
    count("changed bytes, each found", tried, kind)


def boundaries(data: bytes, stride: int) -> Iterator[int]:
    """Every bracket, quote and colon, the ends, and a dense sample of the rest."""
    for position, byte in enumerate(data):
        ends = position < 4 or position >= len(data) - 4
        if byte in b'{}[]":' or ends or position % stride == 0:
            yield position


def test_a_changed_byte_of_an_optical_session_is_found(
    finished: dict[str, Path], count: Count
) -> None:
    folder = finished[OPTICAL]
    tried = sum(
        flip(folder, name, boundaries(data, 61), 0x04)
        for name, data in folder_bytes(folder).items()
    )
    count("changed bytes, each found", tried, OPTICAL)
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
            stamps = {path: path.stat().st_mtime_ns for path in [moved, *moved.rglob("*")]}
            assert verdict_of(moved).verified
            assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
        assert folder_bytes(moved) == before


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 90
touch "$1/study.json" && exit 91
exec "$2" -m probebench verify "$1"
"""


def test_a_finished_folder_verifies_on_a_read_only_mount(finished: dict[str, Path]) -> None:
    """Permissions do not hold root back; a mount does."""
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounts are not allowed here; permissions alone are tested")
    given = ["sh", str(finished[OPTICAL]), sys.executable]
    script = ["unshare", "-m", "sh", "-c", READ_ONLY, *given]
    ran = subprocess.run(script, check=False, capture_output=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert b"verified" in ran.stdout
