"""Sandboxes for tests: a client that is a few lines of Python, and one ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import probebench
from probebench.app.machine import Confinement, sandbox_for
from probebench.host.client_process import ClientCommand
from probebench.host.signals import NoSignals
from probebench.host.subprocess_channel import PerAskClient
from probebench.kernel.episode import Fault
from tests.machine import has
from tests.process.programs import PREAMBLE

NEEDS_BWRAP = pytest.mark.skipif(
    not has("bwrap"),
    reason="needs bwrap (Debian package bubblewrap) and a machine that lets it make namespaces",
)
LONG_S = 60.0
PACKAGE = Path(probebench.__file__).parent


def sandboxed(
    tmp_path: Path, program: str, binds: Sequence[Path] = (), stderr_path: Path | None = None
) -> ClientCommand:
    """The command of a client that is this Python program, in a sandbox."""
    path = tmp_path / "client.py"
    path.write_text(PREAMBLE + program)
    command = ClientCommand.parse(f"python {path}", stderr_path=stderr_path)
    confinement = Confinement(tmp_path / "session", None, binds)
    return replace(command, sandbox=sandbox_for(command, confinement))


def asked(command: ClientCommand) -> tuple[bytes | None, Fault | None]:
    received = PerAskClient(command, "agent", NoSignals()).exchange(b"{}\n", LONG_S)
    return received.line, received.fault
