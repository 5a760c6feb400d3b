"""Probes of a folder: whether the steps of a durable publish do here what they say.

Each works in an empty folder of its own.  What a session would do with the
store, a probe does with the same steps; an OSError or HostError that one lets
through means that the step fails here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from probebench.host.filesystem import FILE_MODE, FOLDER_FLAGS, FOLDER_MODE
from probebench.host.folder import FILE_FLAGS, open_locked, opened_folder
from probebench.host.mounts import concern_of, mount_of
from probebench.host.probing import Finding, Place, broken, caution, sound
from probebench.host.store import Store
from probebench.kernel.errors import HostError

RECORD_BYTES = 22_000
TIMES = 9
MIB = 1024 * 1024
LEAST_FREE_BYTES = 64 * MIB
LEAST_FREE_FILES = 2_000
ENOUGH_BYTES = 1024 * MIB

LOCK_BUSY = 9
LOCK_FROM_ANOTHER_PROCESS = f"""
import fcntl, os, sys
folder = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
try:
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit({LOCK_BUSY})
"""


def file_system(place: Place) -> Finding:
    """Its kind and options, and what is known of them."""
    mount = mount_of(Path(os.path.realpath(place.folder)), place.system.mounts())
    if mount is None:
        return caution("of an unknown kind: this system does not list its mounts")
    seen = f"{mount.kind}, mounted on {mount.point}"
    concern = concern_of(mount)
    return caution(f"{seen}; {concern}") if concern else sound(seen)


def free_space(place: Place) -> Finding:
    """Bytes and inodes that are left."""
    found = place.system.space(place.folder)
    left = found.f_bavail * found.f_frsize
    seen = f"{left / MIB:,.0f} MiB free"
    if left < LEAST_FREE_BYTES:
        return broken(f"{seen}; at least {LEAST_FREE_BYTES // MIB} MiB are needed")
    # Some file systems make inodes as they need them, and report none.
    if found.f_files and found.f_favail < LEAST_FREE_FILES:
        return broken(f"room for {found.f_favail} files; at least {LEAST_FREE_FILES} are needed")
    return sound(seen) if left >= ENOUGH_BYTES else caution(f"{seen}; a long session takes 1 GiB")


# -- names ---------------------------------------------------------------------------


def exclusive_creation(place: Place) -> Finding:
    """A file is not made where one is."""
    with opened_folder(str(place.folder), "the folder") as folder:
        _made(place, folder, "taken")
        if _refuses_existing(lambda: _made(place, folder, "taken")):
            return sound("a name that is taken is refused")
    return broken("a second file was made under a name that was taken")


def hard_links(place: Place) -> Finding:
    """A link gives a second name, and never takes one from another file."""
    steps = place.filesystem
    with opened_folder(str(place.folder), "the folder") as folder:
        for name in ("one", "two"):
            _made(place, folder, name, name.encode())
        steps.link(folder, "one", "final", "final")
        first, final = place.folder / "one", place.folder / "final"
        if not os.path.samestat(first.stat(), final.stat()) or final.stat().st_nlink != 2:
            return broken("a hard link does not give a file a second name")
        if not _refuses_existing(lambda: steps.link(folder, "two", "final", "final")):
            return broken("a link to a name that is taken is not refused with EEXIST")
        if final.read_bytes() != b"one":
            return broken("a link that was refused has changed the file under that name")
        steps.unlink(folder, "one", "one")
        if first.exists() or final.stat().st_nlink != 1:
            return broken("a name that was taken away is still there")
    return sound("a link gives a second name, and a taken one is refused")


def links_not_followed(place: Place) -> Finding:
    """A symbolic link is not opened in place of a file or folder."""
    (place.folder / "inner").mkdir()
    (place.folder / "file").write_bytes(b"")
    try:
        for name in ("inner", "file"):
            (place.folder / f"{name}-link").symlink_to(name)
    except OSError as error:
        return sound(f"there are no symbolic links here ({error.strerror})")
    for name, flags in (("inner", FOLDER_FLAGS), ("file", FILE_FLAGS)):
        try:
            os.close(place.system.open(place.folder / f"{name}-link", flags))
        except OSError as error:
            # Linux says ENOTDIR of a link where a folder is asked for.
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
        else:
            return broken("a symbolic link is followed although it must not be (O_NOFOLLOW)")
    return sound("a symbolic link is refused")


def private_modes(place: Place) -> Finding:
    """Files have mode 0600 and folders 0700."""
    with opened_folder(str(place.folder), "the folder") as folder:
        _made(place, folder, "file")
        place.filesystem.make_folder(folder, "folder", "folder")
    for name, mode in (("file", FILE_MODE), ("folder", FOLDER_MODE)):
        found = stat.S_IMODE((place.folder / name).stat().st_mode)
        if found != mode:
            return broken(f"a new {name} has mode {found:04o}, not {mode:04o}: others may read it")
    return sound("new files have mode 0600, folders 0700")


def letter_case(place: Place) -> Finding:
    """Names that differ in case are two names."""
    (place.folder / "case").write_bytes(b"")
    if (place.folder / "CASE").exists():
        return broken("names that differ in case are the same file")
    return sound("names that differ in case are two files")


# -- durability ----------------------------------------------------------------------


def fsync_of_a_file(place: Place) -> Finding:
    """Its median cost, in ms, with a record's bytes to write."""

    def once(folder: int, name: str) -> None:
        with _open(place, folder, name) as descriptor:
            place.filesystem.write(descriptor, bytes(RECORD_BYTES), name)
            with timed():
                place.filesystem.fsync_file(descriptor, name)

    timed = _Stopwatch(place)
    _repeat(place, once)
    return sound(f"works; median {timed.median_ms():.2f} ms of {TIMES}, {RECORD_BYTES} bytes each")


def fsync_of_a_folder(place: Place) -> Finding:
    """Its median cost, in ms, after a new entry."""

    def once(folder: int, name: str) -> None:
        _made(place, folder, name)
        with timed():
            place.filesystem.fsync_folder(folder, name)

    timed = _Stopwatch(place)
    _repeat(place, once)
    return sound(f"works; median {timed.median_ms():.2f} ms of {TIMES}")


def durable_publish(place: Place) -> Finding:
    """The whole of it, as a session does it twice a turn."""
    timed = _Stopwatch(place)
    with Store.create(place.folder / "session", place.filesystem) as store:
        for number in range(TIMES):
            name = f"record_{number}.json"
            with timed():
                store.publish(name, bytes(RECORD_BYTES))
            if store.read(name) != bytes(RECORD_BYTES):
                return broken("what was published reads back as something else")
    return sound(f"works; median {timed.median_ms():.2f} ms of {TIMES}, {RECORD_BYTES} bytes each")


class _Stopwatch:
    def __init__(self, place: Place) -> None:
        self._clock = place.system.monotonic
        self._seen_s: list[float] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        started = self._clock()
        yield
        self._seen_s.append(self._clock() - started)

    def median_ms(self) -> float:
        return 1e3 * median(self._seen_s)


def _repeat(place: Place, once: Callable[[int, str], None]) -> None:
    with opened_folder(str(place.folder), "the folder") as folder:
        for number in range(TIMES):
            once(folder, f"file_{number}")


# -- locks ---------------------------------------------------------------------------


def lock_within_a_process(place: Place) -> Finding:
    """A second descriptor does not get the lock that the first one holds."""
    held = open_locked(place.folder, fcntl.LOCK_EX)
    try:
        second = place.system.open(place.folder, FOLDER_FLAGS)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return sound("a second lock is refused at once")
        finally:
            os.close(second)
    finally:
        os.close(held)
    return broken("two locks of one folder are held at once")


def lock_between_processes(place: Place) -> Finding:
    """Another process gets the lock when it is free, and only then."""
    held = open_locked(place.folder, fcntl.LOCK_EX)
    try:
        while_held = _locked_elsewhere(place)
    finally:
        os.close(held)
    if while_held == 0:
        return broken("another process gets a lock that is held here")
    after = _locked_elsewhere(place)
    if (while_held, after) != (LOCK_BUSY, 0):
        return broken(f"another process cannot try the lock (exit codes {while_held}, {after})")
    return sound("a lock keeps another process out until it is given back")


def _locked_elsewhere(place: Place) -> int:
    return place.system.python(LOCK_FROM_ANOTHER_PROCESS, str(place.folder)).returncode


# -- steps ---------------------------------------------------------------------------


@contextmanager
def _open(place: Place, folder: int, name: str) -> Iterator[int]:
    descriptor = place.filesystem.open_temporary(folder, name, name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _made(place: Place, folder: int, name: str, data: bytes = b"x") -> None:
    with _open(place, folder, name) as descriptor:
        place.filesystem.write(descriptor, data, name)


def _refuses_existing(step: Callable[[], None]) -> bool:
    try:
        step()
    except HostError as error:
        if isinstance(error.__cause__, FileExistsError):
            return True
        raise
    return False
