"""Probes of the machine, whatever the folder."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

from probebench.host import keys, runtime
from probebench.host.probing import Finding, Place, broken, caution, sound

OLDEST_PYTHON = (3, 11)
NEEDED = (*runtime.PACKAGES, "numba", "rich", "threadpoolctl", "typer")
CLOCK_READINGS = 2_000
PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)")

PR_GET_DUMPABLE = 3
SHIELDED = f"""
import ctypes
from probebench.host.process import shield
shield()
raise SystemExit(ctypes.CDLL(None).prctl({PR_GET_DUMPABLE}, 0, 0, 0, 0))
"""


def python(place: Place) -> Finding:
    """The interpreter's version."""
    del place
    seen = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.version_info < OLDEST_PYTHON:
        return broken(f"{seen}; {'.'.join(map(str, OLDEST_PYTHON))} or later is needed")
    return sound(seen)


def packages(place: Place) -> Finding:
    """The packages that every session needs, with their versions."""
    del place
    found = {name: _version(name) for name in NEEDED}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        return broken(f"not installed: {', '.join(missing)}")
    return sound(", ".join(f"{name} {version}" for name, version in found.items()))


def pins(place: Place) -> Finding:
    """Versions against the pins of the checkout that the package runs from."""
    del place
    pinned = pinned_versions(Path(__file__).parents[2] / "pyproject.toml")
    if not pinned:
        return caution("the package does not run from a checkout, so there are no pins to compare")
    other = [
        f"{name} {version} (pinned {pinned[name]})"
        for name in (*NEEDED, "cryptography")
        if name in pinned and (version := _version(name)) not in (None, pinned[name])
    ]
    return caution(f"other than pinned: {', '.join(other)}") if other else sound("as pinned")


def pinned_versions(project: Path) -> dict[str, str]:
    """Exact versions by package, from a pyproject.toml; none where there is no such file."""
    try:
        content = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    pins = content.get("tool", {}).get("uv", {}).get("constraint-dependencies", [])
    matches = [match for pin in pins if (match := PIN.fullmatch(pin))]
    return {match[1]: match[2] for match in matches}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def blas(place: Place) -> Finding:
    """NumPy's BLAS computes in one thread, once it is told to as in a session."""
    del place
    runtime.use_one_thread()
    found = runtime.capture()["blas"]
    threads = {name: described["num_threads"] for name, described in found.items()}
    seen = ", ".join(
        f"{name} {described['version']} ({described['architecture']})"
        for name, described in found.items()
    )
    if not found:
        return caution("no BLAS that can be examined is loaded")
    if set(threads.values()) != {1}:
        return broken(f"{seen}; it computes in {threads} threads and cannot be kept to one")
    return sound(f"{seen}, one thread")


def clock(place: Place) -> Finding:
    """The monotonic clock never goes back, and goes on."""
    described = time.get_clock_info("monotonic")
    readings = [place.system.monotonic() for _ in range(CLOCK_READINGS)]
    if not described.monotonic or readings != sorted(readings):
        return broken("it goes back")
    if readings[0] == readings[-1]:
        return broken("it stands still")
    return sound(f"it never goes back; resolution {described.resolution:.0e} s")


def shielded_driver(place: Place) -> Finding:
    """A driver can hide its memory from other processes of its user."""
    ran = place.system.python(SHIELDED)
    if ran.returncode != 0:
        last = ran.stdout.strip().rpartition("\n")[2]
        return broken(f"the driver cannot be made undumpable ({last or ran.returncode})")
    if os.geteuid() == 0:
        return caution("undumpable, but sessions would run as root, and root reads everything")
    return sound("other processes of the same user cannot read its memory")


def signatures(place: Place) -> Finding:
    """The extra ``sign`` is installed."""
    del place
    if not keys.can_sign():
        return broken(keys.INSTALL)
    return sound(f"cryptography {_version('cryptography')}")


def terminal(place: Place) -> Finding:
    """What an operator will see while a session runs."""
    del place
    if sys.stderr is None or not sys.stderr.isatty():
        return sound("standard error is no terminal: sessions print a line a turn")
    return sound(f"{os.get_terminal_size(2).columns} columns: sessions show a live picture")
