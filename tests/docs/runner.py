"""Run the blocks of a page in order, in one folder, as a reader would.

The folder holds copies of configs/ and scripts/ and an empty work/.  ``uv run``
and ``uv run --locked`` are answered by a stand-in that runs the command in the
environment of the tests, so that no test installs anything.
"""

from __future__ import annotations

import doctest
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Block
from tests.machine import has

# Commands that a page may show and a test does not run; the test checks that
# the target exists.
NOT_RUN = {
    "make setup": "installs",
    "make demo": "installs; the README shows control and verify, and those are run",
    "make test": "would run itself",
    "make check": "is part of `make test`",
    "make bench": "takes minutes and reports times",
    "make vectors": "writes into the checkout; tests compare what it would write",
}

STAND_IN = """#!/bin/sh
[ "$1" = run ] || { echo "uv $1 is not something the pages may call" >&2; exit 64; }
shift
[ "$1" = --locked ] && shift
exec "$@"
"""


@dataclass(frozen=True)
class Desk:
    """The folder where one page is tried."""

    folder: Path
    tools: Path

    @classmethod
    def lay(cls, root: Path, folder: Path) -> Desk:
        """Copy what a reader has and write the stand-in for uv."""
        desk = cls(folder / "desk", folder / "bin")
        (desk.folder / "work").mkdir(parents=True)
        for name in ("configs", "scripts"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, desk.folder / name, ignore=ignore)
        desk.tools.mkdir()
        stand_in = desk.tools / "uv"
        stand_in.write_text(STAND_IN, encoding="utf-8")
        stand_in.chmod(0o755)
        return desk

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run ``command`` without an input; its two outputs come interleaved."""
        path = [str(self.tools), str(Path(sys.executable).parent), os.environ["PATH"]]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )


def run_block(desk: Desk, block: Block) -> str | None:
    """Run one block, unless it needs a program that is not here.

    Returns what went wrong, or None.
    """
    if "needs" in block.options and not has(block.options["needs"]):
        return None
    if "file" in block.options:
        (desk.folder / block.options["file"]).write_text(block.text, encoding="utf-8")
        return None
    match block.language:
        case "sh":
            return _shell(desk, without_not_run(block.text), int(block.options.get("exit", "0")))
        case "console":
            return _transcript(desk, block)
        case "python":
            return _outcome(desk.run([sys.executable, "-c", block.text]), 0)
        case _:
            return None


def without_not_run(script: str) -> str:
    """The lines of a shell block that are run."""
    kept = [line for line in script.splitlines() if not line.strip().startswith(tuple(NOT_RUN))]
    return "\n".join(kept)


def session(text: str) -> list[tuple[str, str]]:
    """Commands of a console block (lines after ``$``), each with its output."""
    pairs: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs and pairs[-1][0].endswith("\\\n"):
            pairs[-1] = (pairs[-1][0] + line, "")
        elif pairs:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line)
        else:
            raise ValueError(f"a console block must begin with '$ ', not with {line!r}")
    return pairs


def _shell(desk: Desk, script: str, status: int) -> str | None:
    return _outcome(desk.run(["bash", "-euo", "pipefail", "-c", script]), status)


def _transcript(desk: Desk, block: Block) -> str | None:
    # The status counts for the last command, since the output of each is shown.
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    commands = [pair for pair in session(block.text) if without_not_run(pair[0])]
    for position, (command, want) in enumerate(commands, start=1):
        status = int(block.options.get("exit", "0")) if position == len(commands) else 0
        ran = desk.run(["bash", "-euo", "pipefail", "-c", command])
        if (complaint := _outcome(ran, status)) is not None:
            return complaint
        if want and not doctest.OutputChecker().check_output(want, ran.stdout, flags):
            return f"{command}printed\n{ran.stdout}\nbut the page shows\n{want}"
    return None


def _outcome(ran: subprocess.CompletedProcess[str], status: int) -> str | None:
    if ran.returncode == status:
        return None
    return f"exit status {ran.returncode} instead of {status}; it printed\n{ran.stdout}"
