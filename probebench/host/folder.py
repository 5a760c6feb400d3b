"""Opening, locking and making folders, and reading one file in them."""

from __future__ import annotations

import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from probebench.host.filesystem import (
    FOLDER_FLAGS,
    Filesystem,
    close,
    host_errors,
    require_of_the_entry,
)
from probebench.host.survey import complaint
from probebench.kernel.errors import ArtifactError, FolderLockedError, HostError, OperatorError

MAX_FILE_BYTES = 256 * 1024 * 1024
READ_BYTES = 1024 * 1024
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def content(folder: int, base: str, name: str) -> bytes:
    """All bytes of a regular file in an open folder.

    Raises OSError where it cannot be opened or read, ArtifactError where it
    is no regular file under one name; a FIFO does not block.
    """
    descriptor = os.open(base, FILE_FLAGS, dir_fd=folder)
    try:
        if reason := complaint(folder, base, os.fstat(descriptor)):
            raise ArtifactError(name, reason)
        data = _all_bytes(descriptor)
    finally:
        close(descriptor, name)
    if len(data) > MAX_FILE_BYTES:
        raise ArtifactError(name, f"it has more than {MAX_FILE_BYTES} bytes")
    return data


def _all_bytes(descriptor: int) -> bytes:
    data = bytearray()
    while len(data) <= MAX_FILE_BYTES and (piece := os.read(descriptor, READ_BYTES)):
        data += piece
    return bytes(data)


@contextmanager
def opened_folder(base: str, name: str, within: int | None = None) -> Iterator[int]:
    """An open folder, never a link.  Raises HostError."""
    try:
        folder = os.open(base, FOLDER_FLAGS, dir_fd=within)
    except OSError as error:
        raise HostError(f"cannot open the folder {name!r}: {error.strerror}") from error
    try:
        yield folder
    finally:
        close(folder, name)


def is_folder(path: Path) -> bool:
    """Whether there is a folder, links followed.

    Raises OperatorError for a path that cannot even be looked up, HostError
    where the machine fails in looking.
    """
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            require_of_the_entry(error, str(path))
        reason = getattr(error, "strerror", None) or str(error)
        raise OperatorError(f"cannot look at {str(path)!r}: {reason}; give another path") from None


def open_locked(path: Path, kind: int) -> int:
    """Open a folder and lock it at once, or fail at once.

    kind: LOCK_EX or LOCK_SH.  The lock is flock's, on the folder itself: a
    lock file could be unlinked and made anew, and lockf's would be lost when
    any descriptor of the folder is closed.
    Raises OperatorError, FolderLockedError, HostError.
    """
    try:
        root = os.open(path, FOLDER_FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        sentence = f"there is no folder {str(path)!r}: {error.strerror}; give a session folder"
        raise OperatorError(sentence) from error
    except OSError as error:
        raise HostError(f"cannot open the folder {str(path)!r}: {error.strerror}") from error
    try:
        fcntl.flock(root, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(root)
        sentence = f"the folder {str(path)!r} is in use by another driver or by a verification; wait until it has ended"
        raise FolderLockedError(sentence) from error
    except OSError as error:
        os.close(root)
        raise HostError(f"cannot lock the folder {str(path)!r}: {error.strerror}") from error
    return root


def make_folders(path: Path, filesystem: Filesystem) -> None:
    """Make a folder and its parents, each durably.  Raises HostError."""
    with host_errors("look for", str(path)):
        missing = list(itertools.takewhile(lambda place: not place.exists(), [path, *path.parents]))
    for place in reversed(missing):
        with opened_folder(str(place.parent), str(place.parent)) as parent:
            filesystem.make_folder(parent, place.name, str(place))
            filesystem.fsync_folder(parent, str(place.parent))
