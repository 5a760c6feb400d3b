"""Drivers whose system calls fail on purpose: strace's injection into a forked child.

The child is forked from this process, where everything is imported, so that a
run takes tens of milliseconds, and the calls that strace counts are those of
the session alone.  What the client is sent goes through shared memory: that
takes no system call that could fail.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import select
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from probebench import cli
from probebench.app.rig import Rig
from probebench.app.session import run_session
from probebench.kernel.canonical import Json, decode, encode
from probebench.kernel.episode import Ask, Final
from probebench.kernel.turn import Answer
from tests.conformance import Case
from tests.rigs import constant_rig

# Whatever touches a file or a folder; getppid stands for "a message is sent".
SENDS = "getppid"
CALLS = (
    "openat",
    "write",
    "fsync",
    "linkat",
    "unlinkat",
    "mkdirat",
    "flock",
    "close",
    "read",
    "getdents64",
    "newfstatat",
    "fstat",
    "fcntl",
    "dup",
)
TRACE = ",".join((*CALLS, "mkdir", "link", "unlink", "rename", "renameat2", "fdatasync", SENDS))
SPACE = 1 << 24
PR_SET_PTRACER = 0x59616D61
LINE = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+|\?)(.*)")
Before = Callable[[], None]


@dataclass(frozen=True)
class Injection:
    """What happens at the ``when``-th of a session's calls of one kind, from 1.

    effect: as strace writes it, "error=EIO" or "signal=KILL".
    """

    call: str
    effect: str
    when: int

    def __str__(self) -> str:
        return f"{self.call}:{self.effect}:when={self.when}"


@dataclass(frozen=True)
class Call:
    """One line of strace's log."""

    name: str
    arguments: str
    result: str
    injected: bool
    interrupted: bool = False

    @property
    def path(self) -> str:
        """What the first descriptor stands for."""
        match = re.match(r"[\w-]+<([^>]*)>", self.arguments)
        return match[1] if match else ""


@dataclass(frozen=True)
class Ran:
    """What became of a driver: its exit code (minus a signal's number), what it
    said on standard error, what it sent, and its system calls in order."""

    code: int
    said: str
    sent: list[bytes]
    calls: list[Call]

    def counts(self) -> dict[str, int]:
        return {name: sum(call.name == name for call in self.calls) for name in CALLS}


class Transcript:
    """Messages in memory that parent and child share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SPACE)

    def note(self, message: bytes) -> None:
        end = self._end()
        assert end + 8 + len(message) < SPACE, "the transcript is full"
        self._memory[end : end + 4] = struct.pack("<I", len(message))
        self._memory[end + 4 : end + 4 + len(message)] = message
        os.getppid()  # the mark in strace's log

    def _end(self) -> int:
        end = 0
        while size := struct.unpack("<I", self._memory[end : end + 4])[0]:
            end += 4 + size
        return end

    def messages(self) -> list[bytes]:
        found, end = [], 0
        while size := struct.unpack("<I", self._memory[end : end + 4])[0]:
            found.append(self._memory[end + 4 : end + 4 + size])
            end += 4 + size
        self._memory.close()
        return found


class SharedMemoryClient:
    """Answers from the current request, and keeps what it was sent."""

    def __init__(self, case: Case, transcript: Transcript) -> None:
        self._case = case
        self._transcript = transcript

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Json]:
        self._transcript.note(message)
        timing = {"input_wait_s": 0.0, "deadline_s": ask.deadline_s}
        return Answer(self._case.reply(ask, decode(message))), timing

    def farewell(self, final: Final, message: bytes) -> None:
        if message:
            self._transcript.note(message)

    def nested(self) -> SharedMemoryClient:
        return self

    def close(self) -> None:
        return


class Driver(Protocol):
    """What the child does; the default runs or resumes a session."""

    def __call__(self, rig: Rig, case: Case, folder: Path, client: SharedMemoryClient) -> None: ...


def session(rig: Rig, case: Case, folder: Path, client: SharedMemoryClient) -> None:
    run_session(rig, folder, case.config, client, resume=True)


def why_not() -> str:
    """Why no system call can be injected here, or ""."""
    if shutil.which("strace") is None:
        return "strace is not installed (Debian package strace)"
    ran = subprocess.run(
        ["strace", "-o", os.devnull, "-e", "inject=getppid:error=EIO", "true"],
        check=False,
        capture_output=True,
    )
    return "" if ran.returncode == 0 else f"strace does not work here: {ran.stderr.decode()!r:.100}"


def run_traced(
    case: Case,
    folder: Path,
    injection: Injection | None = None,
    *,
    rig: Rig | None = None,
    driver: Driver = session,
    before: Before | None = None,
) -> Ran:
    """Run a session under strace, with one call made to fail.

    before: called in the child first; a broken driver is made there.
    """
    transcript, log = Transcript(), folder.with_suffix(".strace")
    said = folder.with_suffix(".said")
    rig = constant_rig() if rig is None else rig
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        _allow_tracing()
        sys.stderr = said.open("w", buffering=1)
        os.write(ready[1], b"r")
        select.select([go[0]], [], [])  # a read would be counted
        _drive(lambda: driver(rig, case, folder, SharedMemoryClient(case, transcript)), before)
    os.read(ready[0], 1)
    strace = _attach(child, log, injection)
    os.write(go[1], b"g")
    status = os.waitpid(child, 0)[1]
    strace.communicate(timeout=60)
    for end in (*ready, *go):
        os.close(end)
    calls = [_call(m) for line in log.read_text().splitlines() if (m := LINE.match(line))]
    code = os.waitstatus_to_exitcode(status)
    return Ran(code, said.read_text(), transcript.messages(), calls)


def _call(match: re.Match[str]) -> Call:
    return Call(match[1], match[2], match[3], "(INJECTED)" in match[4], "EINTR" in match[4])


def _attach(child: int, log: Path, injection: Injection | None) -> subprocess.Popen[bytes]:
    # "signal" leaves the call itself alone; "none" of them is injected without one.
    inject = [] if injection is None else ["-e", f"inject={injection}"]
    command = ["strace", "-y", "-o", str(log), "-e", f"trace={TRACE}", "-e", "signal=none"]
    strace = subprocess.Popen([*command, *inject, "-p", str(child)], stderr=subprocess.PIPE)
    assert strace.stderr is not None
    said = strace.stderr.readline()
    assert b"attached" in said, said
    return strace


def _allow_tracing() -> None:
    # Where Yama is at work, only who is named may attach.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)


def _drive(run: Callable[[], None], before: Before | None) -> None:
    """The whole life of the child: the command line's own end of every error."""
    code = 99
    try:
        if before is not None:
            before()
        code = cli._code_of(_Command(run), as_json=False)  # type: ignore[arg-type]
    finally:
        os._exit(code)


class _Command:
    """As the command line calls it."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run

    def __call__(self, *, standalone_mode: bool) -> int:
        assert not standalone_mode
        self._run()
        return 0


# -- what must hold of a driver, whatever its system calls did -----------------------------


def faults_of(ran: Ran, folder: Path) -> list[str]:
    """What a driver did wrong; [] for nothing."""
    return [*_silences(ran), *_early_messages(ran), *_unrecorded(ran, folder), *_retries(ran)]


def _silences(ran: Ran) -> list[str]:
    """A failure is told in one sentence, and nothing is sent after it."""
    found = []
    if ran.code not in (0, 5) and ran.code >= 0:
        found.append(f"the exit code is {ran.code}")
    lines = ran.said.splitlines()
    if ran.code > 0 and (len(lines) != 1 or not lines[0].startswith("probebench: ")):
        found.append(f"what it said is not one sentence: {ran.said!r}")
    if "standard output is lost" in ran.said:
        found.append(f"the sentence is of something else: {ran.said!r}")
    names = [SENDS if call.name == SENDS else call.injected for call in ran.calls]
    if ran.code and True in names and SENDS in names[names.index(True) :]:
        found.append("a message was sent after the failure")
    return found


def _early_messages(ran: Ran) -> list[str]:
    """Between the last change of a folder and a message stands an fsync of the folder."""
    unsynced: set[str] = set()
    found = []
    for call in ran.calls:
        entry = call.name in ("linkat", "mkdirat") and call.result == "0"
        if call.name == "fsync" and call.result == "0":
            unsynced.discard(call.path)
        elif entry or (call.name == "write" and call.path.endswith(".publishing")):
            unsynced.add(call.path)
        elif call.name == SENDS and unsynced:
            found.append(f"a message was sent before an fsync of {sorted(unsynced)}")
    return found


def _unrecorded(ran: Ran, folder: Path) -> list[str]:
    sent_by_records = messages_on_disk(folder)
    return [f"no record sends {m!r:.80}" for m in ran.sent if m not in sent_by_records]


def messages_on_disk(folder: Path) -> list[bytes]:
    """The messages of all records in a folder, sessions within it included."""
    records = [*folder.rglob("session.json"), *folder.rglob("turns/*_response.json")]
    found = []
    for path in records:
        with suppress(ValueError):  # a broken driver has left it in pieces
            found.append(encode(decode(path.read_bytes())["message"]))
    return found


def _retries(ran: Ran) -> list[str]:
    """After an fsync has failed, nothing more is done with that file."""
    failed: set[str] = set()
    found = []
    for call in ran.calls:
        touched = re.findall(r"<([^>]*)>", call.arguments)
        if call.name in ("fsync", "fdatasync") and call.path in failed:
            found.append(f"{call.name} of {call.path} was tried again")
        if call.name == "linkat" and any(f"{p}/" in f for p in touched for f in failed):
            base = call.arguments.split('"')[1]
            found += [f"{f} was published unsynced" for f in failed if f.endswith(f"/{base}")]
        if call.name == "fsync" and call.injected and not call.interrupted:
            failed.add(call.path)
    return found


def injections(counts: dict[str, int], calls: Sequence[str], effect: str) -> list[Injection]:
    """One injection for each call of these kinds."""
    return [Injection(name, effect, n + 1) for name in calls for n in range(counts[name])]
