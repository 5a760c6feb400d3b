"""A disk that may lose power: what an outage would leave, at any step of a session.

The model is the strict one.  Content is durable from the fsync of its file on,
an entry from the fsync of its folder on; of everything else, an outage may keep
any part, in any order, and a file that was not synced may come back in pieces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from probebench.host.filesystem import Filesystem

Inode = tuple[int, int]


def inode_of(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


@dataclass
class KeptFile:
    """written: all bytes; synced: those that an fsync has made durable."""

    written: bytes = b""
    synced: bytes = b""


@dataclass
class KeptFolder:
    """entries: durable ones; pending: (name, thing or None for removed) since then."""

    entries: dict[str, Inode] = field(default_factory=dict)
    pending: list[tuple[str, Inode | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Order:
    """What one outage does with what is not durable.

    entries: which of n pending entries it keeps; content: what it leaves of a
    file, from the bytes that were written and those that were synced.
    """

    name: str
    entries: Callable[[int], list[int]]
    content: Callable[[bytes, bytes], bytes]


def _whole(written: bytes, synced: bytes) -> bytes:
    return written


def _synced(written: bytes, synced: bytes) -> bytes:
    return synced


def _half(written: bytes, synced: bytes) -> bytes:
    return written if written == synced else written[: len(written) // 2]


def _zeros(written: bytes, synced: bytes) -> bytes:
    return written if written == synced else bytes(len(written))


def _every(count: int) -> list[int]:
    return list(range(count))


LOSES_ALL = Order("all that is not durable is lost", lambda _: [], _synced)
KEEPS_ALL = Order("nothing is lost", _every, _whole)
ENTRIES_FIRST = Order("entries are kept, contents lost", _every, _synced)
TORN = Order("entries are kept, contents torn", _every, _half)
ZEROS = Order("entries are kept, contents are zeros", _every, _zeros)
LATE = Order("the last entry alone is kept", lambda n: _every(n)[-1:], _half)
ORDERS = [LOSES_ALL, KEEPS_ALL, ENTRIES_FIRST, TORN, ZEROS, LATE]


def at_random(seed: int) -> Order:
    chance = Random(seed)

    def some(count: int) -> list[int]:
        return [index for index in range(count) if chance.random() < 0.5]

    def any_of(written: bytes, synced: bytes) -> bytes:
        return chance.choice([_whole, _synced, _half, _zeros])(written, synced)

    return Order(f"random {seed}", some, any_of)


class Disk(Filesystem):
    """Does every step, and keeps account of what is durable."""

    def __init__(self, at_step: Callable[[Disk], None] | None = None) -> None:
        """at_step: called before each durable step: the power may go off here."""
        self.at_step = at_step
        self._files: dict[Inode, KeptFile] = {}
        self._folders: dict[Inode, KeptFolder] = {}
        self._held: list[int] = []

    def before(self, step: str, name: str) -> None:
        if self.at_step is not None:
            self.at_step(self)

    # -- what is done ------------------------------------------------------

    def make_folder(self, folder: int, base: str, name: str) -> None:
        super().make_folder(folder, base, name)
        made = inode_of(os.stat(base, dir_fd=folder))
        self._folders.setdefault(made, KeptFolder())
        self._changed(folder, base, made)

    def open_temporary(self, folder: int, base: str, name: str) -> int:
        descriptor = super().open_temporary(folder, base, name)
        self._held.append(os.dup(descriptor))  # so that no other file takes its number
        made = inode_of(os.fstat(descriptor))
        self._files[made] = KeptFile()
        self._changed(folder, base, made)
        return descriptor

    def write_some(self, descriptor: int, data: memoryview) -> int:
        count = super().write_some(descriptor, data)
        self._files[inode_of(os.fstat(descriptor))].written += bytes(data[:count])
        return count

    def fsync_file(self, descriptor: int, name: str) -> None:
        super().fsync_file(descriptor, name)
        kept = self._files[inode_of(os.fstat(descriptor))]
        kept.synced = kept.written

    def link(self, folder: int, temporary: str, base: str, name: str) -> None:
        super().link(folder, temporary, base, name)
        self._changed(folder, base, inode_of(os.stat(base, dir_fd=folder)))

    def unlink(self, folder: int, temporary: str, name: str) -> None:
        super().unlink(folder, temporary, name)
        self._changed(folder, temporary, None)

    def fsync_folder(self, folder: int, name: str) -> None:
        super().fsync_folder(folder, name)
        kept = self._kept(folder)
        kept.entries = dict(self._after(kept, _every))
        kept.pending.clear()

    def _kept(self, folder: int) -> KeptFolder:
        return self._folders.setdefault(inode_of(os.fstat(folder)), KeptFolder())

    def _changed(self, folder: int, base: str, thing: Inode | None) -> None:
        self._kept(folder).pending.append((base, thing))

    def release(self) -> None:
        while self._held:
            os.close(self._held.pop())

    # -- what an outage leaves -----------------------------------------------

    def left(self, parent: Path, folder: Path, order: Order) -> None:
        """Lay down in ``folder`` what an outage now would leave of its namesake.

        parent: the folder, never lost, in which the session's own one was made.
        """
        kept = self._folders.get(inode_of(parent.stat()), KeptFolder())
        found = dict(self._after(kept, order.entries))
        (inode,) = found.values() if found else (None,)
        if inode is not None:
            self._lay(inode, folder, order)

    def _lay(self, inode: Inode, folder: Path, order: Order) -> None:
        folder.mkdir()
        laid: dict[Inode, Path] = {}
        for base, thing in self._after(self._folders[inode], order.entries):
            if thing in self._folders:
                self._lay(thing, folder / base, order)
            elif thing in laid:  # one file under two names
                (folder / base).hardlink_to(laid[thing])
            else:
                kept, laid[thing] = self._files[thing], folder / base
                laid[thing].write_bytes(order.content(kept.written, kept.synced))

    @staticmethod
    def _after(kept: KeptFolder, which: Callable[[int], list[int]]) -> Iterator[tuple[str, Inode]]:
        entries: dict[str, Inode | None] = dict(kept.entries)
        for index in which(len(kept.pending)):
            base, thing = kept.pending[index]
            entries[base] = thing
        return ((base, thing) for base, thing in entries.items() if thing is not None)
