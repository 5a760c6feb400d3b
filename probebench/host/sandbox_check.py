"""The test of a sandbox on itself, before a session trusts it with a client."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from probebench.host.sandbox import (
    MAX_ADDRESS_SPACE_BYTES,
    MAX_FILE_BYTES,
    MAX_OPEN_FILES,
    SCRATCH,
    SCRATCH_BYTES,
    Sandbox,
)
from probebench.host.sandbox_view import Hidden
from probebench.kernel.canonical import Json
from probebench.kernel.errors import OperatorError, SandboxUnavailableError

PROBE = Path("clients") / "sandbox_probe.py"
WITHIN_S = 30.0
LIMITS = {
    "RLIMIT_CORE": 0,
    "RLIMIT_NOFILE": MAX_OPEN_FILES,
    "RLIMIT_FSIZE": MAX_FILE_BYTES,
    "RLIMIT_AS": MAX_ADDRESS_SPACE_BYTES,
}
NO_SANDBOX = (
    "this machine cannot give the sandbox; see docs/security.md for what it needs, "
    "or leave --sandbox out"
)


def require_closed(sandbox: Sandbox, program: str, hidden: Hidden) -> None:
    """Look out of the sandbox for what it must hide, with everything there to be found.

    program: of the client; its first line may name an interpreter.
    Raises SandboxUnavailableError where anything is reached or the sandbox
    cannot be had, OperatorError where the program cannot be run within.
    """
    private = [str(hidden.package / name) for name in ("environments", "app", "host")]
    places = [path for _, path in hidden.paths() if path != str(hidden.package)]
    with _listeners() as (port, abstract):
        spec = {
            "program": program,
            "hidden": [*places, *private],
            "port": port,
            "abstract": abstract,
            "scratch": dict.fromkeys(SCRATCH, SCRATCH_BYTES),
            "limits": LIMITS,
        }
        answer = _probed(sandbox, hidden.package / PROBE, spec)
    if answer["reached"]:
        raise SandboxUnavailableError(
            f"the sandbox leaves within reach: {'; '.join(answer['reached'])}; {NO_SANDBOX}"
        )
    if not answer["program"]:
        raise OperatorError(
            f"the client program {program!r}, or what its first line names, cannot be run in the "
            "sandbox; show it what it needs with --sandbox-bind"
        )


def _probed(sandbox: Sandbox, probe: Path, spec: Json) -> dict[str, Json]:
    quarters = sandbox.quarters((sys.executable, "-I", str(probe)), {})
    try:
        ran = subprocess.run(  # noqa: S603 - the probe
            quarters.argv,
            input=json.dumps(spec).encode() + b"\n",
            capture_output=True,
            cwd=quarters.folder,
            env=quarters.environment,
            pass_fds=quarters.descriptors,
            timeout=WITHIN_S,
            check=False,
        )
        answer: dict[str, Json] = json.loads(ran.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailableError(f"{error}; {NO_SANDBOX}") from None
    except ValueError:
        said = ran.stderr.decode("utf-8", "replace").strip() or f"exit code {ran.returncode}"
        raise SandboxUnavailableError(
            f"the sandbox cannot be made ({said}); {NO_SANDBOX}"
        ) from None
    finally:
        quarters.vacate()
    return answer


@contextmanager
def _listeners() -> Iterator[tuple[int, str]]:
    """A TCP port of loopback and an abstract Unix socket that take connections."""
    name = f"probebench-{os.getpid()}-{secrets.token_hex(8)}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        unix.bind("\0" + name)
        unix.listen()
        yield tcp.getsockname()[1], name
