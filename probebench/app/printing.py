"""What the commands print: documents for programs, sentences for people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from probebench.app.clients import CommandClients
from probebench.app.rig import machine_rig
from probebench.app.session import Outcome
from probebench.app.show import read_session, report_of
from probebench.app.streams import Printing, print_json, say_error
from probebench.app.verify import Verdict
from probebench.kernel.canonical import Json
from probebench.kernel.errors import ArtifactError, UnfinishedError
from probebench.kernel.page import visible
from probebench.kernel.report import Report

# -- documents -----------------------------------------------------------------


def outcome_document(outcome: Outcome) -> Json:
    """A session's end, for --json."""
    return {
        "folder": spelled(outcome.folder),
        "status": outcome.status,
        "cause": outcome.cause,
        "already_complete": outcome.already_complete,
        "head_sha256": outcome.head_sha256,
        "manifest_sha256": outcome.manifest_sha256,
        "evaluator": outcome.evaluator,
    }


def verdict_document(verdict: Verdict) -> Json:
    """A verdict, for --json."""
    failure = verdict.failure
    return {
        "folder": spelled(verdict.folder),
        "verified": verdict.verified,
        "checks": [{"property": name, "seen": seen} for name, seen in verdict.checks],
        "failed_artifact": None if failure is None else failure.artifact,
        "failure": None if failure is None else str(failure),
        "head_sha256": verdict.head_sha256 or None,
        "manifest_sha256": verdict.manifest_sha256 or None,
        "signature": None if verdict.signed_by is None else asdict(verdict.signed_by),
        "outcome": None if verdict.evaluator is None else verdict.evaluator["outcome"],
    }


def report_document(report: Report, evaluator: Json) -> Json:
    """What a session folder holds, for --json."""
    return {
        "headline": list(report.headline),
        "columns": list(report.columns),
        "rows": [list(row) for row in report.rows],
        "figures": dict(report.figures),
        "evaluator": evaluator,
    }


def spelled(path: Path) -> str:
    """A path as text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


# -- what is printed -------------------------------------------------------------


def print_answer(sentences: Sequence[str], document: Json, printing: Printing) -> None:
    """Print an answer in the form that was asked for: lines, or one document."""
    if printing.as_json:
        print_json(document)
    elif not printing.quiet:
        print("\n".join(sentences))


def failed_word(failure: ArtifactError) -> str:
    """What a failed verification is called."""
    return "UNFINISHED" if isinstance(failure, UnfinishedError) else "FAILED"


def say_check(name: str, seen: str) -> None:
    """Print one property that holds."""
    print(f"ok      {name}: {seen}", flush=True)


def print_outcome(outcome: Outcome, printing: Printing) -> None:
    """Print a session's end on standard output, which only the operator reads."""
    if printing.as_json:
        print_json(outcome_document(outcome))
        return
    console = Console(soft_wrap=True)
    report = report_of(machine_rig(), read_session(outcome.folder))
    for sentence in report.headline:
        console.print(sentence, highlight=False, markup=False)
    print(f"folder: {spelled(outcome.folder)}")


def say_end(outcome: Outcome, printing: Printing) -> None:
    """The end on standard error, which a client on our own streams may read."""
    if printing.quiet:
        return
    if outcome.already_complete:
        say_error("the session was complete already; nothing was run or written")
    cause = f" ({outcome.cause})" if outcome.status == "failed" else ""
    say_error(f"session {outcome.status}{cause}; head {outcome.head_sha256}")


def say_last_words(clients: CommandClients) -> None:
    """Show the end of what the clients wrote to standard error."""
    if words := clients.last_words():
        # Spelled out: control characters would be obeyed by the terminal.
        lines = "\n".join(visible(line) for line in words.split("\n"))
        say_error(f"the client's last words on standard error:\n{lines}")
