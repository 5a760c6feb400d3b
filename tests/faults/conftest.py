"""One finished session of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.finished import SESSIONS, verdict_of
from tests.rigs import constant_rig


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders by name; tests put back what they change."""
    root = tmp_path_factory.mktemp("finished")
    folders = {name: root / name.replace(" ", "-") for name in SESSIONS}
    for name, folder in folders.items():
        SESSIONS[name].run(folder, constant_rig())
        assert verdict_of(folder).verified
    return folders
