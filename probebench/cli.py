"""The commands and their parameters; what they do is in app.commands."""

from __future__ import annotations

import sys
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from probebench.app import streams
from probebench.app.streams import BESIDE_THE_FOLDER, Printing
from probebench.cli_options import (
    Agent,
    AgentEnv,
    AgentStderr,
    AsJson,
    Config,
    ExpectHead,
    Folder,
    Output,
    Quiet,
    Refit,
    Resume,
    SandboxBind,
    UseSandbox,
    Verify,
    lazily,
    leave,
    needed,
    refuse_together,
)
from probebench.kernel.errors import ExitCode, ProbebenchError

if TYPE_CHECKING:
    from probebench.app import commands
    from probebench.app import doctor as diagnosis
    from probebench.app import sign as signing
else:
    commands = lazily("probebench.app.commands")
    diagnosis = lazily("probebench.app.doctor")
    signing = lazily("probebench.app.sign")

app = typer.Typer(
    name="probebench",
    help="Benchmark drivers for agents that work through an instrument.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Make configurations.", no_args_is_help=True)
app.add_typer(config_app, name="config")


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
        refuse_together(
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
        leave(commands.verify(verify, printing, expect_head=expect_head, refit=refit))
    refuse_together("goes with --verify alone", expect_head=expect_head, refit=refit)
    folder = needed("--output", output)
    client = _client(agent, agent_env, agent_stderr, sandbox=sandbox, binds=sandbox_bind)
    leave(commands.session(needed("--config", config), folder, client, printing, resume=resume))


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
    leave(commands.resume(folder, client, Printing(quiet=quiet, as_json=as_json)))


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
    leave(code)


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
    path = needed("--output", output)
    leave(signing.keygen(path, Printing(quiet=quiet, as_json=as_json)))


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
    path = needed("--key", key)
    leave(signing.sign(folder, path, Printing(quiet=quiet, as_json=as_json)))


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
    folder = needed("--output", output)
    leave(commands.control(needed("--config", config), folder, printing, resume=resume))


@app.command()
def doctor(
    folder: Annotated[
        Path, typer.Option("--folder", help="Folder that sessions are to be kept in.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Check this machine, and say which promises hold here."""
    leave(diagnosis.doctor(folder, as_json=as_json))


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
    leave(commands.show(folder, as_json=as_json, html=html))


@app.command()
def schema(
    message: Annotated[
        str | None, typer.Argument(help="Message; all of them without it.", show_default=False)
    ] = None,
    environment: Annotated[str, typer.Option("--environment", help="Environment.")] = "optical",
) -> None:
    """Print the JSON Schemas of the messages and the configuration."""
    leave(commands.schema(environment, message))


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
    leave(commands.config_new(environment, options, output))


# Typer carries its command-line parser within itself, and exports of its usage
# errors this one alone; the others share its base.
_UsageError: Any = typer.BadParameter.__mro__[1]


# Options whose value may be left out, which Typer has no word for.
_OPTIONAL_VALUES = {"show": {"--html": BESIDE_THE_FOLDER}}


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
    streams.prepare_process()
    raise SystemExit(int(_code_of(command, as_json="--json" in sys.argv)))


def _code_of(command: typer.Typer, *, as_json: bool) -> int:
    try:
        code = command(standalone_mode=False)
        streams.flush_output()
    except ProbebenchError as error:
        return streams.report_error(error, as_json=as_json)
    except _UsageError as error:
        return streams.report_usage(error.format_message(), error.show, as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED_INT
    except (OSError, SystemExit) as error:  # the latter is Typer's answer to a broken pipe
        return streams.report_lost_output(getattr(error, "strerror", "Broken pipe"))
    except Exception as error:  # noqa: BLE001 - exit code 1 means a failed episode, and no defect may
        return streams.report_defect(error)
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
        refuse_together(
            "goes with --agent alone", agent_env=names, agent_stderr=path, sandbox=sandbox
        )
    if not sandbox:
        refuse_together("goes with --sandbox alone", sandbox_bind=binds)
    return commands.Client(agent, environment_names or (), stderr_path, sandbox, binds or ())
