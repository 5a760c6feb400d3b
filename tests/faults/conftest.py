"""One finished session of each kind, and a place for sessions that are cut short."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.finished import SESSIONS, verdict_of
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
