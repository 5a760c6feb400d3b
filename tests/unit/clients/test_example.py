"""The agent that docs/protocol.md shows is short and beats the zero command."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from probebench.app.clients import CommandClients
from probebench.app.session import run_session
from probebench.environments.optical import config as configuration
from probebench.host.client_process import ClientCommand
from probebench.host.signals import NoSignals
from tests.docs.pages import Block, blocks
from tests.rigs import constant_rig

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def example() -> Block:
    (found,) = [block for block in blocks(PAGE) if block.options.get("file") == "agent.py"]
    return found


def entropy_of(seed: str) -> bytes:
    return hashlib.sha256(f"example {seed}".encode()).digest()


def test_it_has_about_thirty_lines() -> None:
    assert 20 <= example().text.count("\n") <= 32


@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
def test_it_ends_far_below_the_zero_command(seed: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.py"
    path.write_text(example().text, encoding="utf-8")
    config = configuration.fresh_config(
        lambda count: entropy_of(seed)[:count], "tool_assisted", "example"
    )
    clients = CommandClients(ClientCommand.parse(f"python {path}"), NoSignals())
    try:
        outcome = run_session(constant_rig(), tmp_path / "session", config, clients)
    finally:
        clients.close()
    assert outcome.submitted, clients.last_words()
    evaluation = outcome.evaluator["evaluation"]
    assert evaluation["residual_wfe_nm_rms"] < evaluation["zero_command_wfe_nm_rms"] / 4
