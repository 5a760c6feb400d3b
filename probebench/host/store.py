"""A session folder: locked, written durably, read without trust.

Each file is published once: temporary file, fsync, link to its final name,
unlink, fsync of the folder.  When ``publish`` returns, the file is on the
disk in full; until it has returned, nothing that depends on it may be sent.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from probebench.host.filesystem import (
    FOLDER_FLAGS,
    Filesystem,
    close,
    host_errors,
    require_of_the_entry,
)
from probebench.host.folder import (
    MAX_FILE_BYTES,
    content,
    make_folders,
    open_locked,
    opened_folder,
)
from probebench.host.survey import (
    NAME,
    Anomaly,
    is_empty,
    is_temporary,
    printable,
    reason_of,
    temporary_name,
    walk,
)
from probebench.kernel.errors import ArtifactError, HostError, OperatorError, ProbebenchError

__all__ = ["Anomaly", "Filesystem", "Store", "is_temporary", "printable"]

BATCH = 256  # files that are open at once


class Store:
    """One session folder, held by an advisory lock on the folder itself.

    Names are relative paths with / between their parts, each of letters,
    digits, "_", "." and "-", not starting with "." or "-".
    """

    def __init__(self, path: Path, root: int, filesystem: Filesystem, refusal: str) -> None:
        """Use ``create``, ``open`` or ``open_readonly``.

        root: open descriptor of the folder, locked; the store closes it.
        refusal: why nothing is published, or "".
        """
        self.path = path
        self._root = root
        self._filesystem = filesystem
        self._refusal = refusal

    # -- opening -----------------------------------------------------------

    @classmethod
    def create(cls, path: Path, filesystem: Filesystem) -> Self:
        """Make the folder, parents included, and lock it; it must be empty.

        Raises FolderLockedError, OperatorError (not empty, not a folder),
        HostError.
        """
        real = Path(os.path.realpath(path))
        make_folders(real, filesystem)
        store = cls(real, open_locked(real, fcntl.LOCK_EX), filesystem, "")
        try:
            _require_empty(store._root, path)
        except ProbebenchError:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, path: Path, filesystem: Filesystem) -> Self:
        """Lock an existing folder; nothing in it is touched.

        Raises FolderLockedError, OperatorError, HostError.
        """
        real = Path(os.path.realpath(path))
        return cls(real, open_locked(real, fcntl.LOCK_EX), filesystem, "")

    @classmethod
    def open_readonly(cls, path: Path) -> Self:
        """Lock an existing folder against drivers, not against other readers."""
        real = Path(os.path.realpath(path))
        root = open_locked(real, fcntl.LOCK_SH)
        return cls(real, root, Filesystem(), "the folder was opened for reading")

    def close(self) -> None:
        """Give the lock back."""
        root, self._root = self._root, -1
        if root >= 0:
            close(root, str(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- writing -----------------------------------------------------------

    def publish(self, name: str, data: bytes) -> None:
        """Make one new file durable under ``name``; return only when it is.

        Raises HostError naming the step and the file, also where the name is
        taken.  After a failure the store publishes nothing more: what failed
        may be half on the disk, and only a resume can tell.
        """
        self.publish_all({name: data})

    def publish_all(self, items: Mapping[str, bytes]) -> None:
        """Make several new files durable, with one fsync for each of their folders.

        A kill in the middle leaves some of them, each whole.
        """
        if self._refusal:
            raise HostError(f"nothing more is published in {str(self.path)!r}: {self._refusal}")
        for name, data in items.items():
            _require_publishable(name, data)
        self._refusal = "an earlier publish was cut short"
        names = list(items)
        try:
            for start in range(0, len(names), BATCH):
                batch = names[start : start + BATCH]
                self._publish_batch({name: items[name] for name in batch})
        except HostError as error:
            self._refusal = f"it failed before ({error})"
            raise
        self._refusal = ""

    def _publish_batch(self, items: Mapping[str, bytes]) -> None:
        steps = self._filesystem
        first = next(iter(items), "")
        with host_errors("publish", first), ExitStack() as folders, ExitStack() as files:
            places = self._places(items, folders)
            written = {
                name: self._written(*places[name], name, data, files)
                for name, data in items.items()
            }
            for name, descriptor in written.items():
                steps.fsync_file(descriptor, name)
            files.close()
            for name, (folder, base) in places.items():
                steps.link(folder, temporary_name(base), base, name)
            for name, (folder, base) in places.items():
                steps.unlink(folder, temporary_name(base), name)
            for folder, name in {folder: name for name, (folder, _) in places.items()}.items():
                steps.fsync_folder(folder, name.rpartition("/")[0] or ".")

    def _places(self, names: Iterable[str], folders: ExitStack) -> dict[str, tuple[int, str]]:
        opened: dict[str, int] = {}
        places: dict[str, tuple[int, str]] = {}
        for name in names:
            parent, _, base = name.rpartition("/")
            if parent not in opened:
                opened[parent] = folders.enter_context(self._folder(parent, make=True))
            places[name] = opened[parent], base
        return places

    def _written(self, folder: int, base: str, name: str, data: bytes, files: ExitStack) -> int:
        descriptor = self._filesystem.open_temporary(folder, temporary_name(base), name)
        files.callback(close, descriptor, name)
        self._filesystem.write(descriptor, data, name)
        return descriptor

    def finish(self, name: str) -> None:
        """Take away the temporary name of a file that has its final one too.

        A driver killed between link and unlink leaves both; another file under
        the temporary name is left alone.
        """
        parent, _, base = name.rpartition("/")
        with host_errors("examine", name), self._folder(parent) as folder:
            try:
                both = [
                    os.stat(entry, dir_fd=folder, follow_symlinks=False)
                    for entry in (base, temporary_name(base))
                ]
            except FileNotFoundError:
                return
            if os.path.samestat(*both):
                self._filesystem.unlink(folder, temporary_name(base), name)
                self._filesystem.fsync_folder(folder, parent or ".")

    def discard_temporary(self, name: str) -> None:
        """Remove the file that a killed publish of ``name`` left, if it left one."""
        parent, _, base = name.rpartition("/")
        temporary = temporary_name(base)
        with host_errors("examine", name), self._folder(parent) as folder:
            try:
                found = os.stat(temporary, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return
            if stat.S_ISREG(found.st_mode):  # what is no file, no publish has left
                self._filesystem.unlink(folder, temporary, name)

    def discard_temporaries(self) -> list[str]:
        """Remove what killed runs left half published; returns the names.

        Only for a folder whose every entry is known to be a session's own.
        """
        discarded = []
        for entry in walk(self._root):
            if is_temporary(entry.name):
                self._filesystem.unlink(entry.folder, entry.base, entry.name)
                discarded.append(entry.name)
        return discarded

    def sync(self) -> None:
        """Make the entries of every folder durable, this one's own included.

        A run killed between link and fsync leaves records in the page cache
        alone; call this before anything that depends on them is sent.
        """
        steps = self._filesystem
        for entry in walk(self._root):
            if entry.is_folder:
                with opened_folder(entry.base, entry.name, entry.folder) as folder:
                    steps.fsync_folder(folder, entry.name)
        steps.fsync_folder(self._root, ".")
        with opened_folder(str(self.path.parent), "..") as parent:
            steps.fsync_folder(parent, "..")

    # -- reading -----------------------------------------------------------

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises ArtifactError where it is missing, no regular file, under more
        than one name, behind a link, or not for us to read; HostError where
        the machine fails in reading it.
        """
        _require_name(name)
        parent, _, base = name.rpartition("/")
        try:
            with self._folder(parent) as folder:
                return content(folder, base, name)
        except OSError as error:
            require_of_the_entry(error, name)
            raise ArtifactError(name, reason_of(error)) from error

    def exists(self, name: str) -> bool:
        """Whether anything at all stands under this name."""
        _require_name(name)
        parent, _, base = name.rpartition("/")
        try:
            with self._folder(parent) as folder:
                os.stat(base, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            require_of_the_entry(error, name)
            raise ArtifactError(name, reason_of(error)) from error
        return True

    def names(self) -> list[str]:
        """Every entry, recursively and sorted: files and whatever stands in
        their place, and folders that are empty or cannot be opened, whose
        names end in /.  Characters that no store writes are escaped.
        """
        return [entry.name for entry in walk(self._root) if not entry.is_folder or entry.reason]

    def anomalies(self) -> list[Anomaly]:
        """The entries that no store makes, each with what is wrong with it."""
        return [Anomaly(entry.name, entry.reason) for entry in walk(self._root) if entry.reason]

    def subfolder(self, name: str) -> Path:
        """The path of a folder within this one, for a session of its own.

        Raises ArtifactError where it is missing, a link or not a folder.
        """
        _require_name(name)
        try:
            with self._folder(name):
                return self.path / name
        except OSError as error:
            require_of_the_entry(error, name)
            raise ArtifactError(f"{name}/", reason_of(error)) from error

    @contextmanager
    def _folder(self, name: str, *, make: bool = False) -> Iterator[int]:
        folder = os.dup(self._root)
        reached = ""
        try:
            for base in filter(None, name.split("/")):
                reached = f"{reached}{base}/"
                inner = self._inner(folder, base, reached, make=make)
                outer, folder = folder, inner
                close(outer, reached)
            yield folder
        finally:
            close(folder, reached or ".")

    def _inner(self, folder: int, base: str, name: str, *, make: bool) -> int:
        try:
            return os.open(base, FOLDER_FLAGS, dir_fd=folder)
        except OSError as error:
            if not make:
                raise
            if not isinstance(error, FileNotFoundError):
                raise HostError(f"cannot publish in {name!r}: {reason_of(error)}") from error
        self._filesystem.make_folder(folder, base, name)
        self._filesystem.fsync_folder(folder, name.rpartition("/")[0].rpartition("/")[0] or ".")
        return os.open(base, FOLDER_FLAGS, dir_fd=folder)


def _require_empty(root: int, path: Path) -> None:
    if not is_empty(root):
        raise OperatorError(
            f"the folder {str(path)!r} is not empty; go on with it with --resume, or name another"
        )


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ArtifactError(printable(name), "this is no name of a file in a session folder")


def _require_publishable(name: str, data: bytes) -> None:
    if not NAME.fullmatch(name):
        raise HostError(f"cannot publish {name!r}: it is no name of a file in a session folder")
    if len(data) > MAX_FILE_BYTES:
        raise HostError(f"cannot publish {name!r}: {len(data)} bytes exceed {MAX_FILE_BYTES}")
