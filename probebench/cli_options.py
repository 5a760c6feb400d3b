"""Parameters that several commands share, how a command ends, how its code is loaded."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Annotated, NoReturn

import typer

from probebench.kernel.errors import ExitCode, OperatorError

Config = Annotated[
    Path | None, typer.Option("--config", help="Configuration file (JSON).", show_default=False)
]
Output = Annotated[
    Path | None, typer.Option("--output", help="Session folder to make.", show_default=False)
]
Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help="Command of the client; without it, our own standard streams.",
        show_default=False,
    ),
]
AgentEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--agent-env",
        help="Environment variable that the client is given; repeatable.",
        show_default=False,
    ),
]
AgentStderr = Annotated[
    Path | None,
    typer.Option(
        "--agent-stderr", help="File for the client's standard error.", show_default=False
    ),
]
UseSandbox = Annotated[
    bool, typer.Option("--sandbox", help="Run the client in bubblewrap, out of reach of the truth.")
]
SandboxBind = Annotated[
    list[Path] | None,
    typer.Option(
        "--sandbox-bind",
        help="File or folder that a sandboxed client may read; repeatable.",
        show_default=False,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted session.")]
Verify = Annotated[
    Path | None,
    typer.Option("--verify", help="Verify this folder and run nothing.", show_default=False),
]
ExpectHead = Annotated[
    str | None,
    typer.Option(
        "--expect-head", help="Head digest noted when the session ended.", show_default=False
    ),
]
Refit = Annotated[
    bool, typer.Option("--refit", help="Run every saved computation again and compare.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing of the progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Folder = Annotated[Path, typer.Argument(help="Session folder.")]


def leave(code: ExitCode) -> NoReturn:
    """End the command with a documented exit code."""
    raise typer.Exit(int(code))


def needed(option: str, value: Path | None) -> Path:
    """The value of an option that must be given.  Raises OperatorError."""
    if value is None:
        raise OperatorError(f"the option {option} is missing; give it")
    return value


def refuse_together(reason: str, **others: object) -> None:
    """Refuse options that would be ignored: who gave one expects its effect."""
    if given := [f"--{name.replace('_', '-')}" for name, value in others.items() if value]:
        raise OperatorError(f"{', '.join(given)} {reason}; leave it out")


def lazily(name: str) -> ModuleType:
    """A module that is loaded when something of it is first used.

    So that `--help`, and each command, waits only for what it needs.
    """
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    spec = util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    spec.loader = util.LazyLoader(spec.loader)
    module = sys.modules[name] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
