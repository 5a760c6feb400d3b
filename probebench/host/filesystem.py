"""The durable steps, one system call each, so that a test can stand before any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from probebench.kernel.errors import HostError

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TEMPORARY_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER_MODE = 0o700
FILE_MODE = 0o600


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
        try:
            self.before(step, name)
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise HostError(f"cannot {step.replace('_', ' ')} {name!r}: {reason}") from error

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
