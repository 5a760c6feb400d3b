"""Finished sessions, one of each track, for all tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.drivers import DEVELOPMENT, DIRECT, SCRIPTED, run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A direct session, complete; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "session"
    words = ("session", "--config", DIRECT, "--output", folder, "--agent", SCRIPTED)
    assert run(*words).returncode == 0
    return folder


@pytest.fixture(scope="module")
def assisted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An assisted session with a started client, complete; not to be changed."""
    folder = tmp_path_factory.mktemp("assisted") / "session"
    words = ("session", "--config", DEVELOPMENT, "--output", folder, "--agent", SCRIPTED)
    assert run(*words).returncode == 0
    return folder
