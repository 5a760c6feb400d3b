"""Check this machine, and say which of the suite's promises hold here."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probebench.app.machine import Confinement, sandbox_for
from probebench.app.printing import spelled
from probebench.app.streams import print_json
from probebench.host import folder_probes as disk
from probebench.host import machine_probes as machine
from probebench.host.filesystem import Filesystem
from probebench.host.folder import is_folder
from probebench.host.probing import Finding, Level, Place, Probe, System, broken, sound
from probebench.host.subprocess_channel import ClientCommand
from probebench.kernel.errors import ExitCode, OperatorError, ProbebenchError
from probebench.kernel.page import visible
from probebench.kernel.turn import STUDY

SCRATCH = "probebench-doctor-"
STYLES = {Level.OK: "green", Level.NOTE: "yellow", Level.FAILED: "bold red"}


@dataclass(frozen=True)
class Check:
    """One check.  needed: without it no session runs as promised.

    promise: what depends on it.
    """

    name: str
    probe: Probe
    promise: str
    needed: bool = True


@dataclass(frozen=True)
class Row:
    """How one check came out."""

    check: str
    result: Level
    seen: str
    promise: str


def closed_sandbox(place: Place) -> Finding:
    """A sandbox for a client, with a session in ``place``, passes its test of itself."""
    (place.folder / STUDY).write_bytes(b"{}\n")
    client = ClientCommand.parse(shlex.join([sys.executable, "-c", "pass"]))
    sandbox = sandbox_for(client, Confinement(place.folder, config=None))
    return sound(f"bwrap {sandbox.version}; what must be hidden is out of reach")


PUBLISH = "a record is on the disk before anything depends on it"
ONE_DRIVER = "a second driver in a folder is refused"
PRIVATE = "other users and agents cannot read the hidden truth"

WRITABLE = "writable"
FOLDER_CHECKS = (
    Check(
        "file system",
        disk.file_system,
        "records outlive a power loss, and locks hold",
        needed=False,
    ),
    Check("free space", disk.free_space, "a session is not cut off by a full disk"),
    Check("exclusive creation", disk.exclusive_creation, "no file is written by two drivers"),
    Check("hard links", disk.hard_links, "a published record is never replaced"),
    Check("fsync of a file", disk.fsync_of_a_file, PUBLISH),
    Check("fsync of a folder", disk.fsync_of_a_folder, PUBLISH),
    Check("durable publish", disk.durable_publish, "a turn waits for two of them"),
    Check("lock", disk.lock_within_a_process, ONE_DRIVER),
    Check("lock between processes", disk.lock_between_processes, ONE_DRIVER),
    Check("links not followed", disk.links_not_followed, "no file outside a folder is taken in"),
    Check("private modes", disk.private_modes, PRIVATE, needed=False),
    Check("letter case", disk.letter_case, "a file beside its case variant is found", needed=False),
    Check("sandbox", closed_sandbox, "`--sandbox` keeps an agent from the truth", needed=False),
)
MACHINE_CHECKS = (
    Check("python", machine.python, "the suite runs"),
    Check("packages", machine.packages, "the suite runs"),
    Check("pins", machine.pins, "another machine gets the same figures", needed=False),
    Check("blas", machine.blas, "the same session gives the same bytes", needed=False),
    Check("clock", machine.clock, "deadlines are kept, and durations recorded"),
    Check("shielded driver", machine.shielded_driver, PRIVATE, needed=False),
    Check("signatures", machine.signatures, "`keygen`, `sign`, `--public-key`", needed=False),
    Check("terminal", machine.terminal, "what is seen while a session runs", needed=False),
)


def doctor(folder: Path, *, as_json: bool) -> ExitCode:
    """Check this machine and the file system of ``folder``; print what holds."""
    rows = examine(folder, Filesystem(), System())
    failed = [row.check for row in rows if row.result is Level.FAILED]
    if as_json:
        checks = [asdict(row) for row in rows]
        print_json({"folder": spelled(folder), "healthy": not failed, "checks": checks})
    else:
        _print(folder, rows, failed, Console())
    return ExitCode.HOST_ERROR if failed else ExitCode.COMPLETE


def examine(folder: Path, filesystem: Filesystem, system: System) -> list[Row]:
    """Run every check; nothing is left in the folder.

    Raises OperatorError where there is no folder, or a session in it.
    """
    if not is_folder(folder):
        raise OperatorError(
            f"there is no folder {str(folder)!r} to examine; make it, or name the one that will "
            "hold your sessions"
        )
    if os.path.lexists(folder / STUDY):
        raise OperatorError(
            f"the folder {str(folder)!r} holds a session, where nothing else is written; "
            "name the folder that it lies in"
        )
    place = Place(folder, filesystem, system)
    return [*_folder_rows(place), *(_row(check, place) for check in MACHINE_CHECKS)]


def _folder_rows(place: Place) -> Iterator[Row]:
    """Each check gets a folder of its own, below one that goes at the end."""
    promise = "a session can be kept there"
    try:
        scratch = TemporaryDirectory(prefix=SCRATCH, dir=place.folder, ignore_cleanup_errors=True)
    except OSError as error:
        seen = f"cannot write here: {error.strerror}; its other checks were not tried"
        yield Row(WRITABLE, Level.FAILED, seen, promise)
        return
    with scratch as path:
        yield Row(WRITABLE, Level.OK, "files can be made here", promise)
        for number, check in enumerate(FOLDER_CHECKS):
            own = Path(path) / str(number)
            own.mkdir()
            yield _row(check, replace(place, folder=own))


def _row(check: Check, place: Place) -> Row:
    try:
        found = check.probe(place)
    except (ProbebenchError, ImportError, OSError, TimeoutExpired) as error:
        found = broken(str(error))
    level = Level.NOTE if found.level is Level.FAILED and not check.needed else found.level
    return Row(check.name, level, found.seen, check.promise)


def _print(folder: Path, rows: Sequence[Row], failed: Sequence[str], console: Console) -> None:
    if console.is_terminal:
        console.print(_table(rows))
    else:
        for row in rows:
            promise = "" if row.result is Level.OK else f" [{row.promise}]"
            print_line(f"{row.result:7} {row.check}: {row.seen}{promise}", console)
    verdict = f"not fit for sessions: {', '.join(failed)}" if failed else "fit for sessions"
    print_line(f"{verdict} ({spelled(folder)})", console)


def print_line(text: str, console: Console) -> None:
    """Print one line whole, however narrow the terminal is."""
    console.print(Text(visible(text)), soft_wrap=True)


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("", "check", "seen", "what depends on it"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        mark = Text(row.result.value, style=STYLES[row.result])
        table.add_row(mark, row.check, Text(visible(row.seen)), Text(row.promise, style="dim"))
    return table
