"""Sessions played for the table of docs/protocol.md: by replies, over pipes, by a process."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probebench.app.clients import CommandClients, StreamClients
from probebench.app.registry import default_registry
from probebench.app.rig import Clients
from probebench.app.session import Outcome, run_session
from probebench.environments.optical import config as configuration
from probebench.host.channel import StreamChannel
from probebench.host.client_process import ClientCommand
from probebench.host.signals import NoSignals
from probebench.kernel.canonical import decode, encode
from probebench.kernel.episode import Ask, Episode
from probebench.kernel.study import Study
from tests.rigs import NONCE, RepliesInProcess, constant_rig

Message = dict[str, Any]
Line = Callable[[Message], bytes]

PHOTONS = 30_000
BOUND_NM = 200.0
PROBE_OPD_NM = [80.0, 0.0, 0.0, 0.0, 0.0, 0.0]
LATER_OPD_NM = [0.0, 20.0, 0.0, 0.0, 0.0, -20.0]
ZERO_OPD_NM = [0.0] * 6
SHORT_S = 0.3
LONG_S = 120.0
SMALL_PIPE_BYTES = 4096


def small_config(
    track: str = "tool_assisted",
    deadline_s: float = LONG_S,
    exposures: int = 4,
    estimates: int = 2,
    requests: int = 12,
) -> Message:
    """A development configuration that costs milliseconds, with fixed seeds."""
    config: Message = configuration.fresh_config(lambda count: bytes(range(count)), track, "table")
    assisted = track == "tool_assisted"
    return config | {
        "pupil": {"samples": 32, "obscuration": 0.2},
        "detector": {**config["detector"], "pixels": 16, "photons_per_exposure": PHOTONS},
        "command_bound_nm": BOUND_NM,
        "input_deadline_s": deadline_s,
        "budget": {
            "exposures": exposures,
            "estimates": estimates if assisted else 0,
            "requests": requests,
        },
    }


# -- what a client says ----------------------------------------------------------


def action(message: Message, name: str, **fields: Any) -> Message:
    """An action that answers ``message``, as an object."""
    envelope = {"protocol": "probebench.agent.v1", "request_id": message["request_id"]}
    return {**envelope, "action": name, **fields}


def exposes(command_opd_nm: Any = PROBE_OPD_NM) -> Line:
    """Expose under a command."""
    return lambda message: encode(action(message, "expose", command_opd_nm=command_opd_nm))


EXPOSES = exposes()


def estimates(message: Message) -> bytes:
    """Ask for an estimate."""
    return encode(action(message, "estimate"))


def submits(message: Message) -> bytes:
    """Submit zero."""
    return encode(action(message, "submit", command_opd_nm=ZERO_OPD_NM))


def ends(message: Message) -> bytes:
    """Expose once more if that is possible, then submit."""
    measured = message["observation"]["command_opd_nm"] == LATER_OPD_NM
    if measured or "expose" not in message["available_actions"]:
        return submits(message)
    return exposes(LATER_OPD_NM)(message)


def opened(exposures: int = 4) -> tuple[Message, Ask, Episode]:
    """A fresh episode, its first request, and the ask that sends it."""
    environment = default_registry()["optical"].environment
    episode = environment.open(Study(small_config(exposures=exposures), {}, {}), NONCE)
    ask = episode.pending()
    if not isinstance(ask, Ask):
        raise TypeError("an optical episode begins with an ask")
    return ask.body, ask, episode


# -- a client at the other end of two pipes ----------------------------------------


class Wire:
    """The client's ends; ``over`` is set when the session is."""

    def __init__(self, source: int, sink: int) -> None:
        self._reader = os.fdopen(source, "rb")
        self._sink = sink
        self.over = threading.Event()

    def read(self) -> Message:
        """The next message of the driver."""
        message: Message = json.loads(self._reader.readline())
        return message

    def write(self, data: bytes) -> None:
        """Send bytes, all of them."""
        while data:
            data = data[os.write(self._sink, data) :]

    def end(self) -> None:
        """Close the end that actions go out of."""
        os.close(self._sink)
        self._sink = -1

    def close(self) -> None:
        """Close both ends."""
        self._reader.close()
        if self._sink >= 0:
            self.end()


Program = Callable[[Wire], None]


def _over_pipes(run: Callable[[Clients], Outcome], program: Program) -> Outcome:
    requests, actions = os.pipe(), os.pipe()
    # No message fits into the pipe, so that a client that does not read stalls it.
    fcntl.fcntl(requests[1], fcntl.F_SETPIPE_SZ, SMALL_PIPE_BYTES)
    clients = StreamClients(StreamChannel(actions[0], requests[1], NoSignals()))
    wire = Wire(requests[0], actions[1])
    client = threading.Thread(target=_played, args=(program, wire))
    client.start()
    try:
        return run(clients)
    finally:
        wire.over.set()
        clients.close()
        client.join()
        wire.close()


def _played(program: Program, wire: Wire) -> None:
    with suppress(BrokenPipeError):
        program(wire)
        wire.over.wait()


# -- cases and what came of them -----------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One row's session.

    line: the input of the row, sent after the lines ``before``.
    program: instead of lines, what a client does at its pipes.
    argv: instead of both, a client process.
    turn: the turn that the input makes.
    command: what the observation shows afterwards, where the row is about that.
    """

    line: Line = EXPOSES
    before: tuple[Line, ...] = ()
    program: Program | None = None
    argv: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    command: list[float] | None = None
    turn: int = 1

    @property
    def input_turn(self) -> int:
        """The turn whose counters the row is about."""
        return len(self.before) + self.turn


@dataclass(frozen=True)
class Played:
    """A finished session as its folder shows it.

    messages: the first request, then the message of each turn's response.
    responses, received: the response record, and the exact bytes, of each turn.
    """

    folder: Path
    outcome: Outcome
    messages: list[Message]
    responses: list[Message]
    received: list[bytes]


def play_case(case: Case, folder: Path) -> Played:
    """Play the session of a row in a new folder."""
    config = small_config(**case.config)

    def run(clients: Clients) -> Outcome:
        return run_session(constant_rig(), folder, config, clients)

    if case.program is not None:
        return _read(folder, _over_pipes(run, case.program))
    if case.argv is not None:
        command = ClientCommand.parse(f"{sys.executable} {case.argv}")
        clients = CommandClients(command, NoSignals())
        try:
            return _read(folder, run(clients))
        finally:
            clients.close()
    return _read(folder, run(_replies((*case.before, case.line))))


def play_without(case: Case, folder: Path) -> Played:
    """The same session without the row's line."""
    outcome = run_session(
        constant_rig(), folder, small_config(**case.config), _replies(case.before)
    )
    return _read(folder, outcome)


def _replies(lines: tuple[Line, ...]) -> RepliesInProcess:
    def reply(_ask: Ask, message: Message) -> bytes:
        position = len(clients.messages) - 1
        return lines[position](message) if position < len(lines) else ends(message)

    clients = RepliesInProcess(reply)
    return clients


def _read(folder: Path, outcome: Outcome) -> Played:
    turns = sorted((folder / "turns").iterdir())
    responses = [decode(path.read_bytes()) for path in turns if "_response" in path.name]
    answers = [decode(path.read_bytes()) for path in turns if "_response" not in path.name]
    first = decode((folder / "session.json").read_bytes())["message"]
    return Played(
        folder=folder,
        outcome=outcome,
        messages=[first, *(response["message"] for response in responses)],
        responses=responses,
        received=[base64.b64decode(answer["received_base64"]) for answer in answers],
    )
