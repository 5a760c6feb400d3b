"""What each command does; the command line only declares its parameters."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from probebench.app.clients import CommandClients
from probebench.app.drive import Observer
from probebench.app.html import session_page
from probebench.app.machine import Confinement, driving, read_config
from probebench.app.printing import (
    failed_word,
    outcome_document,
    print_outcome,
    report_document,
    say_check,
    say_end,
    say_last_words,
    verdict_document,
)
from probebench.app.registry import default_registry, entry_of
from probebench.app.rig import Unwatched, machine_rig
from probebench.app.session import Outcome, frozen_config, run_session
from probebench.app.show import read_as_written, read_session, report_of, sections_of
from probebench.app.streams import (
    BESIDE_THE_FOLDER,
    Printing,
    is_terminal,
    pretty,
    print_json,
    say_error,
)
from probebench.app.terminal import print_session
from probebench.app.transcript import read_transcript
from probebench.app.verify import verify_folder
from probebench.app.view import LineView, LiveView
from probebench.host.folder import is_folder
from probebench.host.keys import read_public_key
from probebench.kernel.canonical import Json
from probebench.kernel.errors import (
    ExitCode,
    OperatorError,
)
from probebench.kernel.report import RecordedSession
from probebench.kernel.study import Study


@dataclass(frozen=True)
class Client:
    """Which client a session has.

    command: its command line, or None for the driver's own streams.
    environment_names: variables that it is given besides the fixed few.
    stderr_path: a file for its standard error, or None.
    sandbox: whether it runs in one.  binds: what it is shown there besides.
    """

    command: str | None = None
    environment_names: Sequence[str] = ()
    stderr_path: Path | None = None
    sandbox: bool = False
    binds: Sequence[Path] = ()

    def confinement(self, folder: Path, config_path: Path | None) -> Confinement | None:
        """What its sandbox hides and shows, or None without one."""
        return Confinement(folder, config_path, self.binds) if self.sandbox else None


def session(
    config_path: Path, folder: Path, client: Client, printing: Printing, *, resume: bool
) -> ExitCode:
    """Run a session, or with ``resume`` go on with one."""
    config = read_config(config_path)
    if resume and not is_folder(folder):
        say_error("there is no such folder yet, so a new session is started")
    confinement = client.confinement(folder, config_path)
    return _run(config, folder, client, printing, confinement, resume=resume)


def resume(folder: Path, client: Client, printing: Printing) -> ExitCode:
    """Go on with the session in ``folder`` under its own configuration."""
    config = frozen_config(machine_rig(), folder)
    return _run(config, folder, client, printing, client.confinement(folder, None), resume=True)


def _run(
    config: Json,
    folder: Path,
    client: Client,
    printing: Printing,
    confinement: Confinement | None,
    *,
    resume: bool,
) -> ExitCode:
    if printing.as_json and client.command is None:
        raise OperatorError(
            "--json needs --agent: over our own streams, standard output is the protocol's alone"
        )
    if client.command is None and is_terminal(sys.stdin):
        say_error("no --agent is given: standard input and output, this terminal, are the client")
    with (
        _watching(config, printing) as observer,
        driving(
            client.command, observer, client.environment_names, client.stderr_path, confinement
        ) as (rig, clients),
    ):
        outcome = run_session(rig, folder, config, clients, resume=resume)
        if not (outcome.submitted or printing.quiet) and isinstance(clients, CommandClients):
            say_last_words(clients)
    say_end(outcome, printing)
    if client.command is not None:
        print_outcome(outcome, printing)
    return _exit_code(outcome)


def verify(
    folder: Path,
    printing: Printing,
    *,
    expect_head: str | None,
    refit: bool,
    public_key: Path | None = None,
    transcript: Path | None = None,
) -> ExitCode:
    """Check a folder and print one line a property."""
    verdict = verify_folder(
        machine_rig(),
        folder,
        expect_head=expect_head,
        public_key=None if public_key is None else read_public_key(public_key),
        transcript=None if transcript is None else read_transcript(transcript),
        refit=refit,
        say=None if printing.as_json or printing.quiet else say_check,
    )
    if printing.as_json:
        print_json(verdict_document(verdict))
    elif verdict.failure is not None:
        print(f"{failed_word(verdict.failure)}  {verdict.failure}")
    else:
        status = verdict.evaluator["outcome"]["status"]
        print(f"verified: {folder}, a {status} episode; head {verdict.head_sha256}")
    return ExitCode.COMPLETE if verdict.verified else ExitCode.VERIFICATION_FAILED


def control(config_path: Path, folder: Path, printing: Printing, *, resume: bool) -> ExitCode:
    """Run the scripted transport control as a client, and verify its folder."""
    config = read_config(config_path)
    agent = _control_command(config)
    with _watching(config, printing) as observer, driving(agent, observer) as (rig, clients):
        outcome = run_session(rig, folder, config, clients, resume=resume)
    verdict = verify_folder(machine_rig(), folder)
    if printing.as_json:
        print_json({**outcome_document(outcome), "verification": verdict_document(verdict)})
    else:
        print_outcome(outcome, printing)
        print(
            "verified"
            if verdict.failure is None
            else f"{failed_word(verdict.failure)}  {verdict.failure}"
        )
    return _exit_code(outcome) if verdict.verified else ExitCode.VERIFICATION_FAILED


def show(folder: Path, *, as_json: bool, html: str | None = None) -> ExitCode:
    """Show a session as a person would want it; nothing is verified.

    html: a file for the page instead, "-" for standard output, or
        BESIDE_THE_FOLDER.
    """
    if as_json and html is not None:
        raise OperatorError("--json and --html are two forms of one answer; leave one out")
    recorded = read_session(folder)
    with read_as_written():
        return _show(recorded, folder, as_json=as_json, html=html)


def _show(recorded: RecordedSession, folder: Path, *, as_json: bool, html: str | None) -> ExitCode:
    rig = machine_rig()
    report = report_of(rig, recorded)
    if as_json:
        print_json(report_document(report, recorded.evaluator))
    elif html is None:
        print_session(report, sections_of(rig, recorded), Console())
    else:
        _give_page(session_page(recorded, report, sections_of(rig, recorded)), html, folder)
    return ExitCode.COMPLETE


def _give_page(page: str, html: str, folder: Path) -> None:
    if html == "-":
        sys.stdout.buffer.write(page.encode())
        return
    if html == BESIDE_THE_FOLDER:
        html = f"{folder.resolve()}.html"
    if Path(html).resolve().is_relative_to(folder.resolve()):
        raise OperatorError(
            f"the page {html!r} would lie in the session folder, which holds the records alone; "
            "give a file outside it"
        )
    _write_private(Path(html), page, "w")
    print(f"page: {html}")


def schema(environment: str, message: str | None) -> ExitCode:
    """Print the JSON Schema of one message, or of all by name."""
    registry = default_registry()
    if environment not in registry:
        raise OperatorError(
            f"there is no environment {environment!r}; use one of {', '.join(sorted(registry))}"
        )
    make = registry[environment].schemas
    schemas = {} if make is None else make()
    if message is None:
        print_json(schemas, pretty_printed=True)
    elif message in schemas:
        print_json(schemas[message], pretty_printed=True)
    else:
        raise OperatorError(
            f"there is no message {message!r}; use one of {', '.join(sorted(schemas))}"
        )
    return ExitCode.COMPLETE


def config_new(environment: str, options: Mapping[str, str], output: Path | None) -> ExitCode:
    """Write a development configuration with fresh 128-bit seeds."""
    registry = default_registry()
    if environment not in registry:
        raise OperatorError(
            f"there is no environment {environment!r}; use one of {', '.join(sorted(registry))}"
        )
    fresh = registry[environment].fresh_config
    if fresh is None:
        raise OperatorError(f"environment {environment!r} makes no fresh configurations")
    text = pretty(fresh(secrets.token_bytes, options))
    if output is None:
        print(text, end="")
        return ExitCode.COMPLETE
    # The seeds are secrets, and an existing configuration is not ours to replace.
    _write_private(output, text, "x")
    return ExitCode.COMPLETE


def _write_private(path: Path, text: str, mode: Literal["w", "x"]) -> None:
    try:
        with open(path, mode, encoding="utf-8", opener=_private) as file:
            file.write(text)
    except OSError as error:
        raise OperatorError(
            f"cannot write {str(path)!r}: {error.strerror}; give a new file's name"
        ) from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _exit_code(outcome: Outcome) -> ExitCode:
    if outcome.submitted or outcome.already_complete:
        return ExitCode.COMPLETE
    return ExitCode.FAILED_EPISODE


def _control_command(config: Json) -> str:
    entry = entry_of(default_registry(), config)
    if entry.control is None:
        raise OperatorError(
            f"environment {entry.environment.id!r} has no scripted control; run `probebench session` with --agent"
        )
    return shlex.join([sys.executable, *entry.control])


@contextmanager
def _watching(config: Json, printing: Printing) -> Iterator[Observer]:
    """A live picture on a terminal, plain lines elsewhere, or nothing."""
    if printing.quiet:
        yield Unwatched()
        return
    entry = entry_of(default_registry(), config)
    glance = str if entry.reporter is None else entry.reporter.glance
    if not is_terminal(sys.stderr):
        yield LineView(glance, say_error)
        return
    budget = entry.environment.budget(Study(config, {}, {}))
    with LiveView(glance, budget, Console(stderr=True)) as view:
        yield view
