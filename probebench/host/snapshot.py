"""The package's own source, so that a session says what it was run with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from probebench.kernel.errors import HostError

LEFT_OUT_FOLDERS = {"__pycache__"}
COMPILED = {".pyc", ".pyo", ".so", ".pyd", ".nbi", ".nbc"}


def capture(package_root: Path) -> dict[str, bytes]:
    """Every source file below ``package_root`` by its path there, sorted.

    Compiled files, hidden ones, editors' copies (``name~``) and __pycache__
    are no source.  Raises HostError for a file that cannot be read, or where
    there is no file at all (a package that is imported from an archive).
    """
    try:
        files = {path: (package_root / path).read_bytes() for path in _paths(package_root)}
    except OSError as error:
        raise HostError(
            f"cannot read the source file {error.filename!r}: {error.strerror}"
        ) from error
    if not files:
        raise HostError(
            f"there is no source below {str(package_root)!r}; install the package unpacked"
        )
    return files


def hashes(snapshot: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256, in hex, of every file."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in snapshot.items()}


def differences(frozen: Mapping[str, str], current: Mapping[str, str]) -> list[str]:
    """One phrase for each file that is not what it was, sorted by path."""
    phrases = []
    for path in sorted(frozen.keys() | current.keys()):
        if path not in current:
            phrases.append(f"source file {path} is gone")
        elif path not in frozen:
            phrases.append(f"source file {path} is new")
        elif frozen[path] != current[path]:
            phrases.append(f"source file {path} has changed")
    return phrases


def _paths(root: Path) -> list[str]:
    paths: list[str] = []
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name not in LEFT_OUT_FOLDERS and name[0] != "."]
        here = Path(folder)
        paths += [(here / name).relative_to(root).as_posix() for name in files if _is_source(name)]
    return sorted(paths)


def _is_source(name: str) -> bool:
    return name[0] != "." and not name.endswith("~") and Path(name).suffix not in COMPILED
