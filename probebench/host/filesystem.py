"""The durable steps, one system call each, so that a test can stand before any."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from probebench.kernel.errors import HostError

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TEMPORARY_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER_MODE = 0o700
FILE_MODE = 0o600

# What these say is of the entry that was looked for; any other error is of the
# machine, and tells nothing of what it holds.
OF_THE_ENTRY = frozenset(
    {
        errno.ENOENT,
        errno.ELOOP,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EACCES,
        errno.EPERM,
        errno.ENXIO,
        errno.ENODEV,
        errno.ENAMETOOLONG,
    }
)


@contextmanager
def host_errors(doing: str, name: str) -> Iterator[None]:
    """Any OSError becomes a HostError: ``doing`` could not be done to ``name``."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise HostError(f"cannot {doing} {name!r}: {reason}") from error


def require_of_the_entry(error: OSError, name: str) -> None:
    """Raise HostError for an error that is the machine's, not the entry's."""
    if error.errno not in OF_THE_ENTRY:
        with host_errors("read", name):
            raise error


def close(descriptor: int, name: str) -> None:
    """Close a descriptor; some systems tell only now that a write has failed."""
    with host_errors("close", name):
        os.close(descriptor)


class Filesystem:
    """The steps that a durable publish is made of.

    folder, descriptor: open descriptors; base: an entry's name in ``folder``;
    name: what the thing is called in errors, and to ``before``.  A test
    overrides ``before`` to record a step, to raise OSError in its place or to
    end the process, or a step itself to leave it out.
    """

    def before(self, step: str, name: str) -> None:
        """Called before each step; does nothing."""

    @contextmanager
    def step(self, step: str, name: str) -> Iterator[None]:
        """One step.  Any OSError becomes a HostError that names it."""
        with host_errors(step.replace("_", " "), name):
            self.before(step, name)
            yield

    def make_folder(self, folder: int, base: str, name: str) -> None:
        """Make a folder; one that is there already is no error."""
        with self.step("make_folder", name), suppress(FileExistsError):
            os.mkdir(base, FOLDER_MODE, dir_fd=folder)

    def open_temporary(self, folder: int, base: str, name: str) -> int:
        """Make a new file and return its descriptor."""
        with self.step("open_temporary", name):
            return os.open(base, TEMPORARY_FLAGS, FILE_MODE, dir_fd=folder)

    def write(self, descriptor: int, data: bytes, name: str) -> None:
        """Write all of ``data``, however little each call takes."""
        rest = memoryview(data)
        while rest:
            with self.step("write", name):
                rest = rest[self.write_some(descriptor, rest) :]

    def write_some(self, descriptor: int, data: memoryview) -> int:
        """Write a beginning of ``data``; returns its length in bytes."""
        return os.write(descriptor, data)

    def fsync_file(self, descriptor: int, name: str) -> None:
        """Make the content durable.  After an error it is never called again:
        the kernel may have dropped the pages that it could not write.
        """
        with self.step("fsync_file", name):
            os.fsync(descriptor)

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        """Give the file its final name, which must be free."""
        with self.step("link", name):
            os.link(temporary, base, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def unlink(self, folder: int, temporary: str, name: str) -> None:
        """Take the temporary name away."""
        with self.step("unlink", name):
            os.unlink(temporary, dir_fd=folder)

    def fsync_folder(self, folder: int, name: str) -> None:
        """Make the entries of a folder durable."""
        with self.step("fsync_folder", name):
            os.fsync(folder)
