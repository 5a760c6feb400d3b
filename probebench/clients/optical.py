"""The optical protocol for agent authors: requests as objects, frames as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

import numpy as np

from probebench.clients.connection import Connection, standard_streams
from probebench.kernel.canonical import Json

PROTOCOL = "probebench.agent.v1"
Frame = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Command = Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Rejected:
    """The last action broke a rule; the same request is still open."""

    code: str
    message: str


@dataclass(frozen=True)
class Message:
    """One message of the driver: a request, or the final acknowledgement.

    body: the whole message as plain JSON; docs/protocol.md describes it.
    """

    body: dict[str, Json]

    @property
    def is_final(self) -> bool:
        """Whether the session is over."""
        return bool(self.body["kind"] == "final")

    @cached_property
    def frame_e(self) -> Frame:
        """The last acquired image, (rows, columns) signed electrons; row 0 is the bottom."""
        key = "last_acquired_observation" if self.is_final else "observation"
        return np.array(self.body[key]["electrons"], dtype=np.float64)

    @property
    def command_opd_nm(self) -> list[float]:
        """The command that the last image was acquired under, (6,) nm OPD."""
        key = "last_acquired_observation" if self.is_final else "observation"
        command: list[float] = self.body[key]["command_opd_nm"]
        return command

    @property
    def available(self) -> list[str]:
        """Names of the actions that would not be refused for want of budget."""
        return [] if self.is_final else list(self.body["available_actions"])

    @property
    def rejected(self) -> Rejected | None:
        """Why the last action was rejected, or None."""
        result = self.body.get("last_result")
        if result is None or result["kind"] != "rejected":
            return None
        return Rejected(result["code"], result["message"])

    @property
    def fit(self) -> dict[str, Json] | None:
        """The estimator's result, if the last action asked for one."""
        result = self.body.get("last_result")
        return result["fit"] if result is not None and result["kind"] == "estimated" else None

    @property
    def instrument(self) -> dict[str, Json]:
        """The public calibration."""
        instrument: dict[str, Json] = self.body["instrument"]
        return instrument

    def remaining(self, resource: str) -> int:
        """What is left of requests, exposures, estimates or photons."""
        resources = self.body["resources"]
        return int(resources["limits"][resource] - resources["spent"][resource])


class Agent:
    """The client's end of an optical session."""

    def __init__(self, connection: Connection) -> None:
        """Wait for the first request."""
        self._connection = connection
        self.current = Message(connection.receive())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is held open: the streams end with the process."""

    def expose(self, command_opd_nm: Command) -> Message:
        """Apply an absolute command, (6,) nm OPD, and acquire an image."""
        return self._act("expose", command_opd_nm)

    def estimate(self) -> Message:
        """Have the supplied estimator fit all images so far."""
        return self._act("estimate", None)

    def submit(self, command_opd_nm: Command) -> Message:
        """End the session with a final command, (6,) nm OPD."""
        return self._act("submit", command_opd_nm)

    def send_line(self, line: bytes) -> Message:
        """Send exact bytes, newline included, and wait for the next message."""
        self._connection.send_line(line)
        return self._next()

    def _act(self, name: str, command_opd_nm: Command | None) -> Message:
        action = {
            "protocol": PROTOCOL,
            "request_id": self.current.body.get("request_id", ""),
            "action": name,
        }
        if command_opd_nm is not None:
            action["command_opd_nm"] = [float(value) for value in command_opd_nm]
        self._connection.send(action)
        return self._next()

    def _next(self) -> Message:
        self.current = Message(self._connection.receive())
        return self.current


def connect(connection: Connection | None = None) -> Agent:
    """Join the session at the other end of our standard streams."""
    return Agent(standard_streams() if connection is None else connection)
