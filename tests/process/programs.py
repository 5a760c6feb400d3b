"""Small client programs for the tests of channels, and how to start them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from probebench.host.channel import StreamChannel
from probebench.host.client_process import ClientCommand
from probebench.host.signals import NoSignals, SignalWake

PREAMBLE = """
import os, signal, sys, time
def read_line():
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return line
def write(data):
    while data:
        data = data[os.write(1, data):]
"""

ECHOES_LENGTHS = "while True: write(b'%d\\n' % len(read_line()))"
# Says so when it is up: only then does a deadline mean what a test says.
READY = "write(b'ready\\n');"


def command(tmp_path: Path, program: str, stderr_path: Path | None = None) -> ClientCommand:
    """A client command that runs ``program``."""
    path = tmp_path / "client.py"
    path.write_text(PREAMBLE + program)
    return ClientCommand.parse(f"python {path}", stderr_path=stderr_path)


@contextmanager
def streams(
    program: str, wake: SignalWake | None = None, kind: type[StreamChannel] = StreamChannel
) -> Iterator[StreamChannel]:
    """A channel to ``program`` over two ordinary pipes, as a shell makes them."""
    with subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        ends = os.dup(client.stdout.fileno()), os.dup(client.stdin.fileno())
        client.stdin.close()
        client.stdout.close()
        channel = kind(*ends, NoSignals() if wake is None else wake)
        try:
            yield channel
        finally:
            channel.close()
            client.kill()
