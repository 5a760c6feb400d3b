"""A hostile client: tries to reach what it must not, reports, and submits.

Started as ``python red_team.py HINTS``; HINTS is JSON and tells it the true
places of everything, so that only a boundary can keep it out.  Each attack
writes one JSON line to standard error.  It uses the standard library alone.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
MEBIBYTE = 1024 * 1024
FILL_BYTES = 72 * MEBIBYTE  # more than a sandbox gives

Hints = dict[str, Any]


def configuration(hints: Hints) -> bool:
    return "detector_seed" in Path(hints["config"]).read_text()


def checked_in_configuration(hints: Hints) -> bool:
    return "detector_seed" in Path(hints["checked_in"]).read_text()


def session_folder(hints: Hints) -> bool:
    return "detector_seed" in Path(hints["session"], "study.json").read_text()


def nonce(hints: Hints) -> bool:
    return "nonce" in Path(hints["session"], "session.json").read_text()


def hidden_source(hints: Hints) -> bool:
    return any_readable(hints["hidden_files"])


def hidden_modules(hints: Hints) -> bool:
    return any(can_import(name) for name in hints["hidden_modules"])


def rest_of_the_checkout(hints: Hints) -> bool:
    return any_readable(hints["checkout"])


def any_readable(paths: list[str]) -> bool:
    """Whether anything can be had of any of these, folders too."""
    for path in map(Path, paths):
        with suppress(OSError):
            if list(path.iterdir()) if path.is_dir() else path.read_bytes():
                return True
    return False


def can_import(name: str) -> bool:
    with suppress(ImportError):
        return importlib.import_module(name) is not None
    return False


def neighbours_of_the_working_folder(hints: Hints) -> bool:
    return any((folder / hints["neighbour"]).exists() for folder in Path.cwd().parents)


# -- the driver's process -------------------------------------------------------------


def processes() -> Iterator[Path]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            yield path


def driver() -> Path:
    """The folder of the driver below /proc, found as its ancestor."""
    pid = os.getppid()
    while pid > 1:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"--output" in words:
            return Path(f"/proc/{pid}")
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    raise FileNotFoundError("the driver")


def driver_command_line(hints: Hints) -> bool:
    seen = b" ".join((path / "cmdline").read_bytes() for path in processes() if path.exists())
    return b"--config\0" + hints["config"].encode() in seen


def driver_environment(hints: Hints) -> bool:
    for path in processes():
        with suppress(OSError):
            if hints["secret"].encode() in (path / "environ").read_bytes():
                return True
    return False


def driver_maps(hints: Hints) -> bool:
    return b"python" in (driver() / "maps").read_bytes()


def driver_memory(hints: Hints) -> bool:
    first = (driver() / "maps").read_text().split("-")[0]
    with (driver() / "mem").open("rb") as memory:
        memory.seek(int(first, 16))
        return len(memory.read(16)) == 16


def driver_descriptors(hints: Hints) -> bool:
    return any(bool(path.readlink()) for path in (driver() / "fd").iterdir())


def driver_trace(hints: Hints) -> bool:
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    pid = int(driver().name)
    if ptrace(PTRACE_SEIZE, pid, None, None) != 0:
        return False
    # Let go of it again, or it would stop at the next signal and never answer.
    ptrace(PTRACE_INTERRUPT, pid, None, None)
    os.waitpid(pid, WALL)
    return bool(ptrace(PTRACE_DETACH, pid, None, None) == 0)


def driver_signals(hints: Hints) -> bool:
    os.kill(int(driver().name), signal.SIGCONT)
    return True


# -- what was handed down -------------------------------------------------------------


def own_environment(hints: Hints) -> bool:
    return hints["secret"] in os.environ.values()


def inherited_descriptors(hints: Hints) -> bool:
    open_now = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    for number in open_now - {0, 1, 2}:
        with suppress(OSError):
            os.fstat(number)
            return True
    return False


def controlling_terminal(hints: Hints) -> bool:
    return os.open("/dev/tty", os.O_RDWR) >= 0


# -- out of the machine, and onto its disk ----------------------------------------------


def loopback(hints: Hints) -> bool:
    with socket.create_connection(("127.0.0.1", hints["port"]), 1):
        return True


def abstract_socket(hints: Hints) -> bool:
    return connects_to("\0" + hints["abstract"])


def named_socket(hints: Hints) -> bool:
    return connects_to(hints["socket"])


def connects_to(name: str) -> bool:
    with socket.socket(socket.AF_UNIX) as attempt:
        attempt.connect(name)
    return True


def outside_interfaces(hints: Hints) -> bool:
    return any(name != "lo" for _, name in socket.if_nameindex())


def writing_elsewhere(hints: Hints) -> bool:
    return Path(hints["outside"], "written").write_text("here") == 4


def filling_the_disk(hints: Hints) -> bool:
    path = Path("filler")
    try:
        with path.open("wb") as file:
            for _ in range(FILL_BYTES // MEBIBYTE):
                file.write(b"x" * MEBIBYTE)
        return path.stat().st_size >= FILL_BYTES
    finally:
        path.unlink()


def kernel_settings(hints: Hints) -> bool:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


def new_namespaces(hints: Hints) -> bool:
    ran = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False)
    return ran.returncode == 0


def leave_a_process(hints: Hints) -> None:
    """Start one that has left our group and our session, and has no parent."""
    if os.fork() == 0:
        program = "import time; time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", program, hints["marker"]], start_new_session=True)
        os._exit(0)
    os.wait()
    time.sleep(0.05)


ATTACKS: tuple[Callable[[Hints], bool], ...] = (
    configuration,
    checked_in_configuration,
    session_folder,
    nonce,
    hidden_source,
    hidden_modules,
    rest_of_the_checkout,
    neighbours_of_the_working_folder,
    driver_command_line,
    driver_environment,
    driver_maps,
    driver_memory,
    driver_descriptors,
    driver_trace,
    driver_signals,
    own_environment,
    inherited_descriptors,
    controlling_terminal,
    loopback,
    abstract_socket,
    named_socket,
    outside_interfaces,
    writing_elsewhere,
    filling_the_disk,
    kernel_settings,
    new_namespaces,
)


def report(attack: Callable[[Hints], bool], hints: Hints) -> None:
    try:
        reached, reason = attack(hints), ""
    except Exception as error:  # noqa: BLE001 - whatever stops an attack, it is stopped
        reached, reason = False, f"{type(error).__name__}: {error}"
    line = {"attack": attack.__name__, "reached": reached, "reason": reason}
    sys.stderr.write(json.dumps(line) + "\n")


def main() -> None:
    hints = json.loads(sys.argv[1])
    request = json.loads(sys.stdin.readline())
    for attack in ATTACKS:
        report(attack, hints)
    leave_a_process(hints)
    action = {"action": "submit", "command_opd_nm": [0] * 6}
    action |= {name: request[name] for name in ("protocol", "request_id")}
    print(json.dumps(action), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
