"""Run inside a sandbox before a session: looks for what must not be there.

``python -I sandbox_probe.py`` reads one JSON object from standard input and
prints one: {"program": whether the client's program can be run here,
"reached": what should have been out of reach}.  It imports nothing but the
standard library, so that it runs wherever a Python does.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

# The sandbox's own init, the probe, and a shell that may stand between them.
MOST_PROCESSES = 3
CLONE_NEWUSER = 0x10000000
# One that names a program for root to run, and one that does not matter.
SETTINGS = ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness")


def reached(spec: dict[str, Any]) -> Iterator[str]:
    """One phrase for each thing within reach.

    spec: "hidden", paths that exist outside; "port" and "abstract", a TCP port
    of loopback and a name of a Unix socket on which somebody listens outside;
    "scratch", bytes by folder that may be written; "limits", by resource name.
    """
    yield from (f"the hidden path {path}" for path in spec["hidden"] if _sees(path))
    if _connects(socket.AF_INET, ("127.0.0.1", spec["port"])):
        yield "a port of this machine"
    if _connects(socket.AF_UNIX, "\0" + spec["abstract"]):
        yield "a Unix socket of this machine"
    processes = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    if len(processes) > MOST_PROCESSES or os.getppid() > 1:
        yield "processes of this machine"
    for folder in ("/", "/usr", "/dev", "/etc"):
        if _writes(Path(folder)):
            yield f"writing in {folder}"
    yield from (f"the kernel's setting {path}" for path in SETTINGS if _opens_to_write(path))
    for folder, most in spec["scratch"].items():
        if not _writes(Path(folder)):
            yield f"no room: {folder} cannot be written"
        elif _size(folder) > most:
            yield f"more than {most} bytes in {folder}"
    if _makes_namespaces():
        yield "namespaces of its own making"
    if _capabilities():
        yield "capabilities"
    for name, most in spec["limits"].items():
        _, hard = resource.getrlimit(getattr(resource, name))
        if hard == resource.RLIM_INFINITY or hard > most:
            yield f"more than the limit {name} allows"


def _sees(path: str) -> bool:
    return os.path.lexists(path)


def _connects(family: socket.AddressFamily, address: tuple[str, int] | str) -> bool:
    with socket.socket(family) as attempt:
        attempt.settimeout(1.0)
        with suppress(OSError):
            attempt.connect(address)
            return True
    return False


def _writes(folder: Path) -> bool:
    path = folder / ".probe"
    try:
        path.write_bytes(b"probe")
    except OSError:
        return False
    path.unlink()
    return True


def _opens_to_write(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True


def _size(folder: str) -> int:
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize


def _makes_namespaces() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _capabilities() -> bool:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    words = [line.split() for line in lines]
    return any(int(word[1], 16) for word in words if word[0] in ("CapEff:", "CapPrm:", "CapBnd:"))


def runs(program: str) -> bool:
    """Whether a program can be executed, and what its first line names too."""
    if not os.access(program, os.X_OK):
        return False
    with Path(program).open("rb") as file:
        first = file.readline(256)
    words = first[2:].split() if first.startswith(b"#!") else []
    return not words or os.access(words[0], os.X_OK)


def main() -> None:
    """Answer one request."""
    spec = json.loads(sys.stdin.readline())
    answer = {"program": runs(spec["program"]), "reached": list(reached(spec))}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
