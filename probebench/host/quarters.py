"""Where a client lives while it runs: a folder of its own, in sight of everything else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Protocol

from probebench.kernel.errors import HostError

PREFIX = "probebench-client-"
SHELL = "/bin/sh"

# Reads from a pipe that the driver holds open and never writes to: the read
# ends when the driver does, however that happens.
DEATHWATCH = """
read -r _
kill -s KILL -- "-$1"
rm -rf -- "$2"
"""


class Quarters(Protocol):
    """What a process is started with, and what is left to do at its end.

    argv, environment: of the process to start; folder: its working folder.
    descriptors: that it inherits besides its three streams.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    descriptors: Sequence[int]

    def entered(self, pid: int) -> None:
        """The process ``pid`` has been started, and leads a group of that number."""
        ...

    def begun(self) -> bool:
        """Whether the client itself ran, said after the process has ended by itself."""
        ...

    def vacate(self) -> None:
        """Remove what was made; the process has ended, or was never started."""
        ...


class OwnFolder:
    """A new folder as working folder, HOME and TMPDIR, removed at the end.

    If the driver dies without a chance to do so, a shell ends the process
    group and removes the folder in its place.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Make the folder.  Raises HostError."""
        try:
            self.folder = tempfile.mkdtemp(prefix=PREFIX)
        except OSError as error:
            # The machine's fault, not the command's.
            sentence = f"cannot make a working folder for the client: {error.strerror}"
            raise HostError(f"{sentence}; make room, or set TMPDIR") from error
        self.argv: Sequence[str] = argv
        self.environment: Mapping[str, str] = {
            "HOME": self.folder,
            "TMPDIR": self.folder,
            **environment,
        }
        self.descriptors: Sequence[int] = ()
        self._deathwatch: subprocess.Popen[bytes] | None = None

    def entered(self, pid: int) -> None:
        """Start the shell that waits for the driver's death.

        A signal of the kernel's at that moment (PR_SET_PDEATHSIG) would reach
        one process alone, and would come when the thread ends that started it.
        """
        self._deathwatch = subprocess.Popen(  # noqa: S603 - our own script
            [SHELL, "-c", DEATHWATCH, "sh", str(pid), self.folder],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,  # a Ctrl-C at the terminal is not for it
        )

    def begun(self) -> bool:
        """The process is the client."""
        return True

    def vacate(self) -> None:
        """Dismiss the shell, remove the folder."""
        if self._deathwatch is not None:
            self._deathwatch.kill()
            self._deathwatch.wait()
            if self._deathwatch.stdin is not None:
                self._deathwatch.stdin.close()
            self._deathwatch = None
        # A client can make folders that nobody can remove; they stay behind.
        shutil.rmtree(self.folder, ignore_errors=True)
