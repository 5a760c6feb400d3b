"""Every error the suite raises on purpose, split by who is at fault.

The command line turns an :class:`ProbebenchError` into one sentence and its
documented exit code; anything else is a defect and keeps its traceback.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the process tells its caller; docs/formats.md holds the same table."""

    COMPLETE = 0
    FAILED_EPISODE = 1
    USAGE = 2
    VERIFICATION_FAILED = 3
    RESUME_MISMATCH = 4
    HOST_ERROR = 5
    LOCKED = 6
    SANDBOX_UNAVAILABLE = 7
    DEFECT = 70
    INTERRUPTED_HUP = 129
    INTERRUPTED_INT = 130
    INTERRUPTED_TERM = 143


class ProbebenchError(Exception):
    """One sentence that names the thing, the value and what to do."""

    exit_code: ClassVar[ExitCode] = ExitCode.HOST_ERROR


# -- the operator's ---------------------------------------------------------


class OperatorError(ProbebenchError):
    """The command line or a file that the operator gave is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(OperatorError):
    """A configuration field is missing, unknown, of a wrong type or out of range."""


class ResumeMismatchError(ProbebenchError):
    """The configuration, source or runtime is not the one that was frozen."""

    exit_code = ExitCode.RESUME_MISMATCH


class FolderLockedError(ProbebenchError):
    """Another driver holds the session folder."""

    exit_code = ExitCode.LOCKED


class SandboxUnavailableError(ProbebenchError):
    """The sandbox was asked for and this machine cannot give it."""

    exit_code = ExitCode.SANDBOX_UNAVAILABLE


# -- the machine's ----------------------------------------------------------


class HostError(ProbebenchError):
    """The operating system refused something; the folder can be resumed."""

    exit_code = ExitCode.HOST_ERROR


class InterruptedBySignalError(ProbebenchError):
    """A signal asked the driver to stop; the folder can be resumed."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number
        self.interrupted_code = ExitCode(128 + signal_number)


# -- the client's -----------------------------------------------------------


class ActionRejectedError(ProbebenchError):
    """The client's action broke a rule; the episode is unchanged.

    code: stable identifier from the environment's documented list.
    detail: what the episode shall know of the answer besides; plain JSON.
    """

    def __init__(self, code: str, message: str, detail: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail


# -- an artifact's ----------------------------------------------------------


class ArtifactError(ProbebenchError):
    """A file of a session folder is not what it must be.

    artifact: its path inside the folder.
    """

    exit_code = ExitCode.VERIFICATION_FAILED

    def __init__(self, artifact: str, message: str) -> None:
        super().__init__(f"{artifact}: {message}")
        self.artifact = artifact
        self.sentence = message


class UnfinishedError(ArtifactError):
    """The journal ends before the episode does."""
