"""Disks for tests of durability: one that records, one that loses power."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from probebench.host.filesystem import Filesystem

Inode = tuple[int, int]


class PowerCutError(BaseException):
    """The process is gone; nothing catches it."""


def inode(descriptor: int) -> Inode:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


@dataclass
class LosesPower(Filesystem):
    """Does every step, and keeps account of what an outage would leave.

    The model is the strict one: content survives from its fsync on, an entry
    from the fsync of its folder on; anything else may be lost or torn.
    cut_before: the step, counted from 0, at which the process dies.
    """

    cut_before: int | None = None
    steps: list[tuple[str, str]] = field(default_factory=list)
    _content: dict[Inode, bytes] = field(default_factory=dict)
    _durable_content: dict[Inode, bytes] = field(default_factory=dict)
    _pending: dict[Inode, dict[str, Inode]] = field(default_factory=dict)
    _durable: dict[Inode, dict[str, Inode]] = field(default_factory=dict)

    def before(self, step: str, name: str) -> None:
        if len(self.steps) == self.cut_before:
            raise PowerCutError
        self.steps.append((step, name))

    def _enter(self, folder: int, base: str) -> None:
        status = os.stat(base, dir_fd=folder, follow_symlinks=False)
        key = inode(folder)
        self._pending.setdefault(key, {})[base] = (status.st_dev, status.st_ino)

    def make_folder(self, folder: int, base: str, name: str) -> None:
        super().make_folder(folder, base, name)
        self._enter(folder, base)

    def write_some(self, descriptor: int, data: memoryview) -> int:
        count = super().write_some(descriptor, data)
        key = inode(descriptor)
        self._content[key] = self._content.get(key, b"") + bytes(data[:count])
        return count

    def fsync_file(self, descriptor: int, name: str) -> None:
        super().fsync_file(descriptor, name)
        self._durable_content[inode(descriptor)] = self._content.get(inode(descriptor), b"")

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        super().link(folder, temporary, base, name)
        self._enter(folder, base)

    def fsync_folder(self, folder: int, name: str) -> None:
        super().fsync_folder(folder, name)
        self._durable.setdefault(inode(folder), {}).update(self._pending.get(inode(folder), {}))

    def kernel_writes_entries_early(self) -> None:
        """What a kernel is free to do at any time: entries before contents."""
        for folder, entries in self._pending.items():
            self._durable.setdefault(folder, {}).update(entries)

    def survivors(self, folder: Path) -> dict[str, bytes]:
        """The files that an outage now would leave in ``folder``; b"torn" for
        one whose content was not durable."""
        status = folder.stat()
        return dict(self._below((status.st_dev, status.st_ino), ""))

    def _below(self, folder: Inode, prefix: str) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        for base, key in self._durable.get(folder, {}).items():
            if key in self._content:
                found.append((prefix + base, self._durable_content.get(key, b"torn")))
            else:
                found += self._below(key, f"{prefix}{base}/")
        return found
