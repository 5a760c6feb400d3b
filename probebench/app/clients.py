"""The clients of a session: the driver's own streams, or programs it starts."""

from __future__ import annotations

from contextlib import suppress

from probebench.host.channel import Received, StreamChannel
from probebench.host.signals import SignalWake
from probebench.host.subprocess_channel import ClientCommand, PerAskClient, SharedClient
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Ask, Fault, FaultKind, Final, Launch
from probebench.kernel.errors import HostError, OperatorError
from probebench.kernel.turn import Answer

# A client that has stopped reading must not hold the end of a session up.
FAREWELL_DEADLINE_S = 2.0


class StreamClients:
    """Whoever is at the other end of the driver's own standard streams."""

    def __init__(self, channel: StreamChannel) -> None:
        self._channel = channel
        self._port: str | None = None

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Json]:
        """Send a message and await one line.  Raises OperatorError for an ask
        that one pair of streams cannot serve.
        """
        if ask.launch is Launch.PER_ASK:
            raise OperatorError(
                "this environment starts a process for each request, which standard streams cannot serve; "
                'give the client with --agent "COMMAND"'
            )
        if self._port not in (None, ask.port):
            raise OperatorError(
                f"this environment also asks port {ask.port!r}, and one pair of streams serves port "
                f'{self._port!r} alone; give the client with --agent "COMMAND"'
            )
        self._port = ask.port
        return _answer(self._channel.exchange(message, ask.deadline_s), ask)

    def farewell(self, final: Final, message: bytes) -> None:
        """Send the last message; whoever is gone has had the end in the journal."""
        del final
        if message:
            with suppress(HostError):
                self._channel.send(message, FAREWELL_DEADLINE_S)

    def nested(self) -> NoClients:
        """The streams belong to the outer session."""
        return NoClients()

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


class CommandClients:
    """Programs that the driver starts: one a port, or one an ask."""

    def __init__(self, command: ClientCommand, signals: SignalWake) -> None:
        """signals: let a signal end a wait."""
        self._command = command
        self._signals = signals
        self._shared: dict[str, SharedClient] = {}
        self._last_words: dict[str, str] = {}  # of the last process of each port

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Json]:
        """Send a message to the port's client, started where it is not yet."""
        if ask.launch is Launch.PER_ASK:
            client = PerAskClient(self._command, ask.port, self._signals)
            received = client.exchange(message, ask.deadline_s)
            self._last_words[ask.port] = client.last_words
            return _answer(received, ask)
        if ask.port not in self._shared:
            self._shared[ask.port] = SharedClient(self._command, ask.port, self._signals)
        return _answer(self._shared[ask.port].exchange(message, ask.deadline_s), ask)

    def farewell(self, final: Final, message: bytes) -> None:
        """Send the last message to the client that it is for, if it runs."""
        if message and final.port in self._shared:
            self._shared[final.port].send(message, FAREWELL_DEADLINE_S)

    def nested(self) -> CommandClients:
        """Processes of their own from the same command."""
        return CommandClients(self._command, self._signals)

    def close(self) -> None:
        """End every process group that is left."""
        for client in self._shared.values():
            client.close()
        self._shared.clear()

    def last_words(self) -> str:
        """The end of what the clients wrote to standard error."""
        shared = {port: client.last_words for port, client in self._shared.items()}
        return "\n".join(words for words in (self._last_words | shared).values() if words)


class NoClients:
    """For sessions that ask nobody: verification, and sessions of tasks alone."""

    def exchange(self, ask: Ask, message: bytes) -> tuple[Answer, Json]:
        """Raise OperatorError, unless the ask can do without a client."""
        del message
        if ask.optional:
            return _nobody(ask)
        raise OperatorError(
            f'the session asks a client at port {ask.port!r} and has none; give one with --agent "COMMAND"'
        )

    def farewell(self, final: Final, message: bytes) -> None:
        """There is nobody to tell."""

    def nested(self) -> NoClients:
        """The same."""
        return self

    def close(self) -> None:
        """Nothing was started."""


def _nobody(ask: Ask) -> tuple[Answer, Json]:
    timing = {"input_wait_s": 0.0, "deadline_s": ask.deadline_s}
    return Answer(b"", Fault(FaultKind.ABSENT)), timing


def _answer(received: Received, ask: Ask) -> tuple[Answer, Json]:
    timing = {"input_wait_s": received.elapsed_s, "deadline_s": ask.deadline_s}
    if received.line is not None:
        return Answer(received.line), timing
    return Answer(received.partial, received.fault), timing
