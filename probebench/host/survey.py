"""What is in a folder, all of it, trusting nothing that is found there."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from probebench.host.filesystem import (
    FOLDER_FLAGS,
    close,
    host_errors,
    require_of_the_entry,
)

MAX_DEPTH = 32  # of folders; sessions within sessions take two levels each
BASE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"
NAME = re.compile(rf"{BASE}(?:/{BASE})*")
TEMPORARY = re.compile(rf"\.{BASE}\.publishing")


@dataclass(frozen=True)
class Anomaly:
    """An entry that no store makes.  name: its path, ending in / for a folder."""

    name: str
    reason: str


@dataclass(frozen=True)
class Entry:
    """One entry.  folder: the open folder that holds it, while it is iterated.

    base: its name there, as the system gives it; name: its path, in printable
    ASCII, ending in / for a folder; reason: what is wrong with it, or "".
    """

    folder: int
    base: str
    name: str
    reason: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.name.endswith("/")


def temporary_name(base: str) -> str:
    """The name of a file of this name while it is being published."""
    return f".{base}.publishing"


def is_temporary(name: str) -> bool:
    """Whether a path is that of a file whose publishing was cut short."""
    return TEMPORARY.fullmatch(name.rpartition("/")[2]) is not None


def final_name(temporary: str) -> str:
    """The path under which a temporary file was to be published."""
    folder, slash, base = temporary.rpartition("/")
    return folder + slash + base[1:].removesuffix(".publishing")


def is_empty(folder: int) -> bool:
    """Whether an open folder has no entries.  Raises HostError."""
    return not _listed(folder, "")


def _listed(folder: int, prefix: str) -> list[str]:
    with host_errors("list", prefix or "."):
        return sorted(os.listdir(folder))


def walk(folder: int, prefix: str = "", depth: int = 0) -> Iterator[Entry]:
    """Every entry below an open folder, sorted by name, folders included.

    Raises HostError where the machine fails, of which no entry is the cause.
    """
    for base in _listed(folder, prefix):
        name = prefix + printable(base)
        try:
            status = os.stat(base, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            require_of_the_entry(error, name)
            yield Entry(folder, base, name, f"it cannot be examined ({error.strerror})")
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from _walk_folder(folder, base, f"{name}/", depth + 1)
        else:
            yield Entry(folder, base, name, complaint(folder, base, status))


def _walk_folder(folder: int, base: str, name: str, depth: int) -> Iterator[Entry]:
    if depth > MAX_DEPTH:
        yield Entry(folder, base, name, f"it is more than {MAX_DEPTH} folders deep")
        return
    try:
        inner = os.open(base, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        require_of_the_entry(error, name)
        yield Entry(folder, base, name, f"it cannot be opened ({error.strerror})")
        return
    try:
        yield Entry(folder, base, name, "" if _listed(inner, name) else "it is an empty folder")
        yield from walk(inner, name, depth)
    finally:
        close(inner, name)


def complaint(folder: int, base: str, status: os.stat_result) -> str:
    """What is wrong with an entry that should be a regular file, or ""."""
    if not stat.S_ISREG(status.st_mode):
        return f"it is {_kind(status.st_mode)}, not a regular file"
    if status.st_nlink == 1 or _is_publishing(folder, base, status):
        return ""
    return f"it has {status.st_nlink} hard links; one is expected"


def _is_publishing(folder: int, base: str, status: os.stat_result) -> bool:
    # A driver killed between link and unlink leaves its file under two names.
    final = base[1:].removesuffix(".publishing") if is_temporary(base) else base
    other = final if is_temporary(base) else temporary_name(base)
    try:
        twin = os.stat(other, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        require_of_the_entry(error, base)
        return False
    same = (twin.st_dev, twin.st_ino) == (status.st_dev, status.st_ino)
    return same and status.st_nlink == 2


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
        stat.S_IFDIR: "a folder",
    }
    return kinds.get(stat.S_IFMT(mode), "of an unknown kind")


def reason_of(error: OSError) -> str:
    """Why an entry could not be opened, said of the entry."""
    if error.errno == errno.ELOOP:
        return "it is a symbolic link, or lies behind one"
    if error.errno == errno.ENOTDIR:
        return "it lies behind something that is not a folder"
    if error.errno == errno.ENOENT:
        return "it is missing"
    return f"it cannot be read ({error.strerror})"


def printable(base: str) -> str:
    """A name in printable ASCII; what a store writes comes back unchanged."""
    raw = os.fsencode(base)
    return "".join(
        chr(byte) if 32 < byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in raw
    )
