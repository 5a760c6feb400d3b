"""The commands and their parameters; what they do is in app.commands."""

from __future__ import annotations

import sys
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from probebench.app import commands
from probebench.app import doctor as diagnosis
from probebench.app import sign as signing
from probebench.app.printing import Printing
from probebench.kernel.errors import ExitCode, OperatorError, ProbebenchError

app = typer.Typer(
    name="probebench",
    help="Benchmark drivers for agents that work through an instrument.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Make configurations.", no_args_is_help=True)
app.add_typer(config_app, name="config")

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


@app.command()
def session(
    config: Config = None,
    output: Output = None,
    agent: Agent = None,
    agent_env: AgentEnv = None,
    agent_stderr: AgentStderr = None,
    sandbox: UseSandbox = False,
    sandbox_bind: SandboxBind = None,
    resume: Resume = False,
    verify: Verify = None,
    expect_head: ExpectHead = None,
    refit: Refit = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a session, go on with one (--resume), or verify one (--verify)."""
    printing = Printing(quiet=quiet, as_json=as_json)
    if verify is not None:
        _refuse_together(
            "does not go with --verify, which runs nothing",
            config=config,
            output=output,
            agent=agent,
            agent_env=agent_env,
            agent_stderr=agent_stderr,
            sandbox=sandbox,
            sandbox_bind=sandbox_bind,
            resume=resume,
        )
        _exit(commands.verify(verify, printing, expect_head=expect_head, refit=refit))
    _refuse_together("goes with --verify alone", expect_head=expect_head, refit=refit)
    folder = _needed("--output", output)
    client = _client(agent, agent_env, agent_stderr, sandbox=sandbox, binds=sandbox_bind)
    _exit(commands.session(_needed("--config", config), folder, client, printing, resume=resume))


@app.command("resume")
def resume_command(
    folder: Folder,
    agent: Agent = None,
    agent_env: AgentEnv = None,
    agent_stderr: AgentStderr = None,
    sandbox: UseSandbox = False,
    sandbox_bind: SandboxBind = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Go on with an interrupted session under its own configuration."""
    client = _client(agent, agent_env, agent_stderr, sandbox=sandbox, binds=sandbox_bind)
    _exit(commands.resume(folder, client, Printing(quiet=quiet, as_json=as_json)))


@app.command("verify")
def verify_command(
    folder: Folder,
    expect_head: ExpectHead = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key",
            help="Key (PEM) that must have signed the session.",
            show_default=False,
        ),
    ] = None,
    transcript: Annotated[
        Path | None,
        typer.Option(
            "--transcript",
            help="JSON lines that a client received; each must be a message of the session.",
            show_default=False,
        ),
    ] = None,
    refit: Refit = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Verify a session folder from its bytes, and against what was kept elsewhere."""
    code = commands.verify(
        folder,
        Printing(quiet=quiet, as_json=as_json),
        expect_head=expect_head,
        public_key=public_key,
        transcript=transcript,
        refit=refit,
    )
    _exit(code)


@app.command()
def keygen(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", help="New file of the private key; KEY.pub beside it.", show_default=False
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make an Ed25519 key to sign sessions with."""
    path = _needed("--output", output)
    _exit(signing.keygen(path, Printing(quiet=quiet, as_json=as_json)))


@app.command()
def sign(
    folder: Folder,
    key: Annotated[
        Path | None, typer.Option("--key", help="Private key (PEM).", show_default=False)
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Verify a finished session and sign its manifest."""
    path = _needed("--key", key)
    _exit(signing.sign(folder, path, Printing(quiet=quiet, as_json=as_json)))


@app.command()
def control(
    config: Config = None,
    output: Output = None,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the scripted transport control as a client, and verify its folder."""
    printing = Printing(quiet=quiet, as_json=as_json)
    folder = _needed("--output", output)
    _exit(commands.control(_needed("--config", config), folder, printing, resume=resume))


@app.command()
def doctor(
    folder: Annotated[
        Path, typer.Option("--folder", help="Folder that sessions are to be kept in.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Check this machine, and say which promises hold here."""
    _exit(diagnosis.doctor(folder, as_json=as_json))


@app.command()
def show(
    folder: Folder,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write one self-contained page; without FILE beside the folder, as FOLDER.html; "
            "- is standard output.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a session: outcome, turns, wavefront error, frames, fits, budget."""
    _exit(commands.show(folder, as_json=as_json, html=html))


@app.command()
def schema(
    message: Annotated[
        str | None, typer.Argument(help="Message; all of them without it.", show_default=False)
    ] = None,
    environment: Annotated[str, typer.Option("--environment", help="Environment.")] = "optical",
) -> None:
    """Print the JSON Schemas of the messages and the configuration."""
    _exit(commands.schema(environment, message))


@config_app.command("new")
def config_new(
    environment: Annotated[str, typer.Option("--environment", help="Environment.")] = "optical",
    track: Annotated[
        str | None, typer.Option("--track", help="Track of the environment.", show_default=False)
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="Preset of the environment.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Free name; no client sees it.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="New file; standard output without it.", show_default=False),
    ] = None,
) -> None:
    """Make a development configuration with fresh 128-bit seeds."""
    given = {"track": track, "preset": preset, "name": name}
    options = {key: value for key, value in given.items() if value is not None}
    _exit(commands.config_new(environment, options, output))


# Typer carries its command-line parser within itself, and exports of its usage
# errors this one alone; the others share its base.
_UsageError: Any = typer.BadParameter.__mro__[1]


# Options whose value may be left out, which Typer has no word for.
_OPTIONAL_VALUES = {"show": {"--html": commands.BESIDE_THE_FOLDER}}


def main() -> None:
    """Run the command line; one sentence and a documented code for every error."""
    sys.argv[1:] = _with_optional_values(sys.argv[1:])
    run(app)


def _with_optional_values(arguments: list[str]) -> list[str]:
    optional = _OPTIONAL_VALUES.get(arguments[0], {}) if arguments else {}
    completed: list[str] = []
    for argument, following in zip_longest(arguments, arguments[1:]):
        completed.append(argument)
        if argument in optional and (following is None or following.startswith("--")):
            completed.append(optional[argument])
    return completed


def run(command: typer.Typer) -> NoReturn:
    """Run a Typer application and turn every end into a documented exit code."""
    commands.prepare_process()
    raise SystemExit(int(_code_of(command, as_json="--json" in sys.argv)))


def _code_of(command: typer.Typer, *, as_json: bool) -> int:
    try:
        code = command(standalone_mode=False)
        commands.flush_output()
    except ProbebenchError as error:
        return commands.report_error(error, as_json=as_json)
    except _UsageError as error:
        return commands.report_usage(error.format_message(), error.show, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED_INT
    except (OSError, SystemExit) as error:  # the latter is Typer's answer to a broken pipe
        return commands.report_lost_output(getattr(error, "strerror", "Broken pipe"))
    except Exception as error:  # noqa: BLE001 - exit code 1 means a failed episode, and no defect may
        return commands.report_defect(error)
    return int(code or 0)


def _client(
    agent: str | None,
    environment_names: list[str] | None,
    stderr_path: Path | None,
    *,
    sandbox: bool,
    binds: list[Path] | None,
) -> commands.Client:
    if agent is None:
        names, path = environment_names, stderr_path
        _refuse_together(
            "goes with --agent alone", agent_env=names, agent_stderr=path, sandbox=sandbox
        )
    if not sandbox:
        _refuse_together("goes with --sandbox alone", sandbox_bind=binds)
    return commands.Client(agent, environment_names or (), stderr_path, sandbox, binds or ())


def _exit(code: ExitCode) -> NoReturn:
    raise typer.Exit(int(code))


def _needed(option: str, value: Path | None) -> Path:
    if value is None:
        raise OperatorError(f"the option {option} is missing; give it")
    return value


def _refuse_together(reason: str, **others: object) -> None:
    """Refuse options that would be ignored: who gave one expects its effect."""
    if given := [f"--{name.replace('_', '-')}" for name, value in others.items() if value]:
        raise OperatorError(f"{', '.join(given)} {reason}; leave it out")
