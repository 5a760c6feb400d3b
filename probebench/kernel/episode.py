"""An episode: a deterministic state machine over events.

At any moment an episode has exactly one pending effect: ask a client
(:class:`Ask`), have a computation done (:class:`Task`), or end
(:class:`Final`).  The driver performs the effect, publishes what came of it
and hands it back as a cause.  An episode never reads a clock, a file, a
stream or an unseeded generator, so the same causes give the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json


class Launch(StrEnum):
    """How a client process relates to the asks that it answers."""

    SHARED = "shared"  # one process, or the driver's own streams, answers all
    PER_ASK = "per_ask"  # a fresh process: one line in, one object out, exit


class FaultKind(StrEnum):
    """What went wrong in place of an answer.  None of them is an action."""

    EOF = "eof"  # the input ended, in a line or between lines
    TIMEOUT = "timeout"  # no complete line before the deadline
    OVERSIZE = "oversize"  # more bytes than an action may have
    ADAPTER = "adapter"  # a per-ask process exited with another code than 0
    SUPERSEDED = "superseded"  # the driver died while a costly ask was open
    ABSENT = "absent"  # there is no client, and the ask can do without one


# -- effects ----------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """Have a client answer one message.

    key: names the ask within the episode, and never repeats for another body.
    port: which client is meant; the role, where an environment has several.
    body: the public message, complete but for the witness.
    witness: the field of ``body`` that receives the digest of the previous
        record, or None where the wire has no place for one.
    reissue: whether an ask that the driver may have sent before it died is
        sent again.  False where an attempt costs: it is then superseded.
    optional: whether the episode has an end for a session without a client;
        otherwise a missing client is the operator's mistake, not a cause.
    """

    key: str
    port: str
    launch: Launch
    body: Json
    deadline_s: float
    witness: str | None = None
    reissue: bool = True
    optional: bool = False


@dataclass(frozen=True)
class Task:
    """Have an expensive computation done, once; its value is saved.

    spec: everything the computation depends on; only its digest is saved.
    hosted: the computation needs the application (a nested session in a
        folder of its own, a sandbox), not the environment alone.
    """

    key: str
    kind: str
    spec: Json
    hosted: bool = False


@dataclass(frozen=True)
class Final:
    """The episode is over.

    submitted: whether the client ended it; otherwise ``cause`` says what did.
    evidence: what the evaluator needs from the episode, all of it public.
    farewell: a last message for the client at ``port``, or None; ``witness``
        is as in an ask.
    not_run: there was nobody to play, which is neither success nor failure.
    details: what the records of the outcome say besides its cause, or None.
    """

    submitted: bool
    cause: str
    evidence: Json
    farewell: Json = None
    port: str = ""
    witness: str | None = None
    not_run: bool = False
    details: Json = None

    @property
    def status(self) -> str:
        """``submitted``, ``failed`` or ``not-run``."""
        if self.not_run:
            return "not-run"
        return "submitted" if self.submitted else "failed"


Effect = Ask | Task | Final

# -- causes -----------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """A parsed, valid action.  ``fields`` holds plain JSON values."""

    name: str
    fields: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejection:
    """An answer that broke a rule: a stable code and a sentence.

    detail: what ``parse`` lets the episode know of the answer besides.
    """

    code: str
    message: str
    detail: Json = None


@dataclass(frozen=True)
class Fault:
    """A transport failure.  exit_code: of a per-ask process, else None."""

    kind: FaultKind
    exit_code: int | None = None


@dataclass(frozen=True)
class Value:
    """The saved result of the pending task."""

    value: Json


Cause = Action | Rejection | Fault | Value


class Episode(Protocol):
    """The state machine that every environment supplies."""

    @property
    def opening_charge(self) -> Charge:
        """What opening the episode spent, before any cause."""
        ...

    def pending(self) -> Effect:
        """Return the one pending effect; the same until ``apply`` is called."""
        ...

    def parse(self, ask: Ask, line: bytes) -> Action:
        """Read one bounded line as an action under the current state; pure.

        Raises ActionRejectedError, and changes nothing.
        """
        ...

    def cost(self, cause: Cause) -> Charge:
        """What applying ``cause`` now would spend; pure."""
        ...

    def apply(self, cause: Cause) -> None:
        """Move to the next state.  ``cause`` answers the pending effect."""
        ...

    def state_digest(self) -> bytes:
        """SHA-256 over all state that later behaviour depends on."""
        ...
