"""One finished session of each kind, and a place for sessions that are cut short."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.faults.finished import SESSIONS, verdict_of
from tests.faults.share import COUNTS, Count
from tests.rigs import constant_rig

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders by name; tests put back what they change."""
    root = tmp_path_factory.mktemp("finished")
    folders = {name: root / name.replace(" ", "-") for name in SESSIONS}
    for name, folder in folders.items():
        SESSIONS[name].run(folder, constant_rig())
        assert verdict_of(folder).verified
    return folders


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: what fails there fails on a disk too, and
    a thousand sessions need not wait for one."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="probebench-", dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def count(capsys: pytest.CaptureFixture[str]) -> Count:
    """Say how often something was done, on the terminal and in the file of counts."""

    def counted(
        what: str, number: int, subject: str, words: str = "", *, quietly: bool = False
    ) -> None:
        with nullcontext() if quietly else capsys.disabled():
            print(f"\n{what}: {number}, {subject}{words and f'; {words}'}")
        if COUNTS:
            line = json.dumps({"what": what, "number": number, "subject": subject})
            with Path(COUNTS).open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    return counted
