"""A client program: how it is started, what it gets to see, how it is ended."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from probebench.host.process import children, end_orphans, takes_in_orphans
from probebench.host.quarters import OwnFolder, Quarters
from probebench.host.sandbox import Sandbox
from probebench.host.signals import NoSignals, SignalWake
from probebench.kernel.errors import HostError, OperatorError, SandboxUnavailableError

ALWAYS_PASSED = ("LANG", "LC_ALL", "TZ")
PORT_VARIABLE = "PROBEBENCH_PORT"
LAST_WORDS_BYTES = 8192
READ_BYTES = 65_536
READS_AT_ONCE = 16

EXIT_GRACE_S = 2.0  # to end by itself once its input is closed
TERM_GRACE_S = 1.0  # to end on SIGTERM, before SIGKILL
KILL_GRACE_S = 5.0  # for the system to carry SIGKILL out
BEGIN_GRACE_S = 0.25  # for a launcher whose output has ended to end itself
PAUSE_S = 0.005

# The clients of this driver that run now, by process number.
_running: set[int] = set()


@dataclass(frozen=True)
class ClientCommand:
    """A command and the environment it runs in.

    argv: the words; one that names an existing file relative to the driver's
        working folder is absolute, for the client runs in a folder of its own.
    environment: all that the client sees, but for HOME and TMPDIR, which are
        its own folder, and PROBEBENCH_PORT, the port that it serves.
    stderr_path: where its standard error is appended; None keeps only the end.
    sandbox: what it runs in; None leaves it in sight of everything.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    stderr_path: Path | None = None
    sandbox: Sandbox | None = None

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        pass_through: Sequence[str] = (),
        stderr_path: Path | None = None,
        surrounding: Mapping[str, str] | None = None,
    ) -> ClientCommand:
        """Read a command line as a POSIX shell splits it; no shell runs.

        pass_through: names of further variables that the client shall see.
        surrounding: the driver's own environment, os.environ unless given.
        Raises OperatorError for an empty or unbalanced line, for a name that
        is not set, and for a program that cannot be found.
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise OperatorError(f"the client command {text!r} cannot be read: {error}") from None
        if not words:
            raise OperatorError("the client command is empty; give a program and its arguments")
        environment = _environment(os.environ if surrounding is None else surrounding, pass_through)
        argv = (_program(words[0], environment), *map(_absolute, words[1:]))
        return cls(argv, environment, stderr_path)


def _environment(surrounding: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    for name in names:
        if name not in surrounding:
            raise OperatorError(f"the variable {name} is to be passed to the client and is not set")
    passed = {n: surrounding[n] for n in (*ALWAYS_PASSED, *names) if n in surrounding}
    # `python` is the interpreter that runs the driver, with its packages.
    path = os.pathsep.join([str(Path(sys.executable).parent), surrounding.get("PATH", os.defpath)])
    return {"PATH": path} | passed


def _program(word: str, environment: Mapping[str, str]) -> str:
    if found := shutil.which(word, path=environment["PATH"]):
        return str(Path(found).absolute())
    raise OperatorError(f"the client program {word!r} is not found, or may not be executed")


def _absolute(word: str) -> str:
    try:
        is_file = word not in ("", ".") and not word.startswith("-") and Path(word).is_file()
    except (OSError, ValueError):  # too long for a name, say: a program text
        return word
    return str(Path(word).absolute()) if is_file else word


class ClientProcess:
    """One running client in a session and group of its own.

    Its pipes' ends here do not block; the client's ends are ordinary pipes.
    exited: a descriptor that becomes readable when it has ended, or None
        where the system has none.
    """

    def __init__(self, command: ClientCommand, port: str) -> None:
        """Start it.  Raises OSError where it cannot be started, HostError."""
        self._last_words = bytearray()
        # Whatever becomes a child of ours from here on comes from clients.
        self._bystanders = children() if takes_in_orphans() else None
        self._quarters = _quarters(command, port)
        try:
            self._process = self._started(command)
        except BaseException:
            self._quarters.vacate()
            raise
        _running.add(self._process.pid)
        self._exit_code: int | None = None
        errors = self._process.stderr
        self.sink = _own_end(self._process.stdin)
        self.source = _own_end(self._process.stdout)
        self.aside = None if errors is None else _own_end(errors)
        self.exited = _exit_descriptor(self._process.pid)
        try:
            self._quarters.entered(self._process.pid)
        except BaseException:
            self.end(0.0)
            raise

    def _started(self, command: ClientCommand) -> subprocess.Popen[bytes]:
        errors = _appended(command.stderr_path)
        try:
            return subprocess.Popen(  # noqa: S603 - the operator's own command, without a shell
                self._quarters.argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if errors is None else errors,
                cwd=self._quarters.folder,
                env=self._quarters.environment,
                pass_fds=self._quarters.descriptors,
                start_new_session=True,
            )
        finally:
            if errors is not None:
                os.close(errors)

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error, unless a file has it."""
        return self._last_words.decode("utf-8", "replace")

    def drain(self, descriptor: int) -> bool:
        """Read standard error once, keep its end; False when it is closed."""
        try:
            piece = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        self._last_words = (self._last_words + piece)[-LAST_WORDS_BYTES:]
        return bool(piece)

    def close_input(self) -> None:
        """Tell the client that nothing follows."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def exits_before(self, deadline: float, wake: SignalWake) -> bool:
        """Wait for its exit, on time.monotonic; its streams are drained."""
        while self._end_seen() is None:
            wake.check()
            self._discard_output()
            if time.monotonic() >= deadline:
                return False
            time.sleep(PAUSE_S)
        return True

    def end(self, grace_s: float) -> int:
        """End all that the client started and return its exit code.

        Its input is closed and it has ``grace_s`` to end by itself, then
        TERM_GRACE_S after SIGTERM; what is left of the group is killed.  With
        the last running client, descendants that left their group end too,
        where ``process.shield`` was called.  A death by signal N is exit code
        128 + N.  Bounded by grace_s + TERM_GRACE_S + 2 * KILL_GRACE_S; raises
        HostError after that.
        """
        if self._exit_code is None:
            self._exit_code = self._ended(grace_s)
        return self._exit_code

    def _ended(self, grace_s: float) -> int:
        self.close_input()
        if not self.exits_before(time.monotonic() + grace_s, NoSignals()):
            self._signal_group(signal.SIGTERM)
            self.exits_before(time.monotonic() + TERM_GRACE_S, NoSignals())
        # The client is not reaped yet, so its number still names this group.
        self._signal_group(signal.SIGKILL)
        try:
            code = self._process.wait(KILL_GRACE_S)
        except subprocess.TimeoutExpired:
            sentence = f"the client process {self._process.pid} does not end on SIGKILL"
            raise HostError(sentence) from None
        self._discard_output()
        self._release()
        self._end_descendants()
        return code if code >= 0 else 128 - code

    def require_begun(self) -> None:
        """To be called when its output has ended; raises SandboxUnavailableError.

        Where the sandbox failed to start the client, that is the machine's
        fault, and no answer of the client's.
        """
        self.exits_before(time.monotonic() + BEGIN_GRACE_S, NoSignals())
        ended = self._end_seen()
        # One that was killed is gone, whatever it was about to do.
        by_itself = ended is not None and ended.si_code == os.CLD_EXITED
        if by_itself and not self._quarters.begun():
            reason = self.last_words.strip() or "what it said is in the file for standard error"
            raise SandboxUnavailableError(
                f"the sandbox did not start the client ({reason}); continue with --resume"
            )

    def _end_seen(self) -> os.waitid_result | None:
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options)

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _discard_output(self) -> None:
        # A client that is ending may still have more to say than a pipe holds.
        # Bounded: one that floods would never be done.
        with suppress(BlockingIOError):
            for _ in range(READS_AT_ONCE):
                os.read(self.source, READ_BYTES)
        for _ in range(READS_AT_ONCE):
            if self.aside is not None:
                self.drain(self.aside)

    def _release(self) -> None:
        for file in (self._process.stdout, self._process.stderr):
            if file is not None:
                file.close()
        if self.exited is not None:
            os.close(self.exited)
        self._quarters.vacate()

    def _end_descendants(self) -> None:
        """End what left the group, unless it may be another running client's."""
        _running.discard(self._process.pid)
        if self._bystanders is not None and not _running:
            end_orphans(self._bystanders, KILL_GRACE_S)


def _quarters(command: ClientCommand, port: str) -> Quarters:
    environment = {**command.environment, PORT_VARIABLE: port}
    if command.sandbox is None:
        return OwnFolder(command.argv, environment)
    return command.sandbox.quarters(command.argv, environment)


def _exit_descriptor(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel before 5.3
            return os.pidfd_open(pid)
    return None


def _own_end(file: IO[bytes] | None) -> int:
    if file is None:
        raise HostError("a pipe of the client process is missing")
    os.set_blocking(file.fileno(), False)
    return file.fileno()


def _appended(path: Path | None) -> int | None:
    if path is None:
        return None
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        sentence = f"cannot write the client's standard error to {str(path)!r}: {error.strerror}"
        raise OperatorError(sentence) from error
