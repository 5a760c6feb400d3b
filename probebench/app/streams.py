"""The standard streams: what is said on them, and how the program ends.

Nothing here is slow to import, since `--help` pays for it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from probebench.host.standard_streams import hold_standard_error
from probebench.kernel.canonical import Json, encode
from probebench.kernel.errors import ExitCode, InterruptedBySignalError, ProbebenchError

# Where `show --html` without a file puts its page.
BESIDE_THE_FOLDER = ""


@dataclass(frozen=True)
class Printing:
    """How much is printed, and in which form."""

    quiet: bool = False
    as_json: bool = False


def say_error(text: str) -> None:
    """One line on standard error; a closed one is no reason to fail."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def print_json(value: Json, *, pretty_printed: bool = False) -> None:
    """Print one JSON document."""
    print(pretty(value) if pretty_printed else encode(value).decode(), end="")


def pretty(value: Json) -> str:
    """Indented JSON for people, with a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def prepare_process() -> None:
    """To be called before anything else is opened."""
    hold_standard_error()


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is open, and a person is at its other end."""
    return stream is not None and stream.isatty()


def report_error(error: ProbebenchError, *, as_json: bool) -> ExitCode:
    """Say in one sentence what went wrong; returns the exit code."""
    code = (
        error.interrupted_code if isinstance(error, InterruptedBySignalError) else error.exit_code
    )
    if as_json:
        print_json({"status": "error", "exit_code": int(code), "error": str(error)})
    say_error(f"probebench: {error}")
    return code


def report_usage(sentence: str, show: Callable[[], None], *, as_json: bool) -> ExitCode:
    """Say what is wrong with the command line; returns the exit code."""
    if as_json:
        code = int(ExitCode.USAGE)
        print_json({"status": "error", "exit_code": code, "error": sentence})
    show()
    return ExitCode.USAGE


def report_defect(error: Exception) -> ExitCode:
    """Show a defect of the suite whole; returns a code that no outcome has."""
    traceback.print_exception(error)
    say_error("probebench: this is a defect of the suite; the folder can be resumed")
    return ExitCode.DEFECT


def report_lost_output(reason: str) -> ExitCode:
    """Say that what was printed did not arrive; returns the exit code."""
    # Or the interpreter would try once more, and complain, when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    say_error(f"probebench: standard output is lost ({reason}); the folder has it all")
    return ExitCode.HOST_ERROR


def flush_output() -> None:
    """Raise OSError now, not at exit, where standard output is full or gone."""
    if sys.stdout is not None:
        sys.stdout.flush()
