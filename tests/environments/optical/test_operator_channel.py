"""What the driver says on standard error, which a client over its streams may read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probebench.app.registry import default_registry
from probebench.clients import Agent, Connection
from probebench.clients.scripted import play
from probebench.kernel.study import Study
from tests.conformance import leaks_in
from tests.environments.optical.protocol_session import small_config

NAME = "a telling name"
FILE = "a-telling-file-name"


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    path = tmp_path / f"{FILE}.json"
    path.write_text(json.dumps({**small_config(), "name": NAME}), encoding="utf-8")
    return path


def driver(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "probebench.agent_session", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def secrets_of(folder: Path) -> list[Any]:
    study = Study.from_document(json.loads((folder / "study.json").read_text()))
    evaluation = json.loads((folder / "evaluator.json").read_text())["evaluation"]
    return list(default_registry()["optical"].environment.secrets(study, evaluation))


def test_standard_error_of_a_session_over_the_drivers_own_streams_tells_no_secret(
    config_path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "session"
    with driver("--config", config_path, "--output", folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        play(Agent(Connection(process.stdout, process.stdin)))
        said = process.stderr.read()
    assert process.returncode == 0
    assert b"head " in said
    assert FILE.encode() not in said
    # As JSON strings, so that the search for secrets in messages reads the lines.
    assert leaks_in(json.dumps(said.decode().splitlines()).encode(), secrets_of(folder)) == []
    evaluation = json.loads((folder / "evaluator.json").read_text())["evaluation"]
    for figure in ("residual_wfe_nm_rms", "zero_command_wfe_nm_rms"):
        assert f"{evaluation[figure]:.2f}" not in said.decode()


@pytest.mark.parametrize("content", ["", "[]", '{"environment": "optical"}', None])
def test_a_configuration_that_cannot_be_used_is_not_named(
    content: str | None, config_path: Path, tmp_path: Path
) -> None:
    if content is None:
        config_path.unlink()
    else:
        config_path.write_text(content, encoding="utf-8")
    with driver("--config", config_path, "--output", tmp_path / "session") as process:
        out, said = process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert said.startswith(b"probebench: ")
    assert FILE.encode() not in said
