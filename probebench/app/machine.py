"""Open this machine's streams, signals and files for the commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import probebench
from probebench.app.clients import CommandClients, StreamClients
from probebench.app.drive import Observer
from probebench.app.rig import Clients, Rig, machine_rig
from probebench.host.channel import StreamChannel, claim_standard_streams
from probebench.host.process import shield
from probebench.host.sandbox import Sandbox, find_launcher
from probebench.host.sandbox_check import require_closed
from probebench.host.sandbox_view import Hidden, view_of
from probebench.host.signals import StopSignals
from probebench.host.subprocess_channel import ClientCommand
from probebench.kernel.canonical import Json
from probebench.kernel.errors import ConfigError
from probebench.kernel.strictjson import parse_document

CONFIG_MAX_BYTES = 1 << 20


def read_config(path: Path) -> Json:
    """Read a configuration file as strict JSON.

    Raises ConfigError.  No sentence names the file: over the driver's own
    streams the client may read what the driver prints, and the name of a
    configuration is not for it.
    """
    try:
        with path.open("rb") as file:
            data = file.read(CONFIG_MAX_BYTES + 1)
    except IsADirectoryError:
        raise ConfigError("the configuration (--config) is a folder; give a JSON file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"the configuration (--config) cannot be read: {reason}; give a JSON file"
        ) from None
    return parse_document(data, "the configuration (--config)", max_bytes=CONFIG_MAX_BYTES)


@dataclass(frozen=True)
class Confinement:
    """What a sandboxed client must not see, and what it may see besides the usual.

    session: the session folder; config: its configuration, or None where the
    folder alone has it.  binds: files and folders that the operator shows it.
    """

    session: Path
    config: Path | None
    binds: Sequence[Path] = ()


@contextmanager
def driving(
    agent: str | None,
    observer: Observer,
    environment_names: Sequence[str] = (),
    stderr_path: Path | None = None,
    confinement: Confinement | None = None,
) -> Iterator[tuple[Rig, Clients]]:
    """The driver shielded, signals caught, clients ready: a program or our own streams.

    agent: the client's command line, or None for the standard streams.
    environment_names: variables that the client is given besides the fixed
        few; see host.subprocess_channel.
    stderr_path: where the client's standard error goes; None keeps its end.
    confinement: for a started client, of the sandbox that it runs in; None
        leaves it without one.
    Raises OperatorError, SandboxUnavailableError, HostError.
    """
    shield()
    # Before anything opens a descriptor that could take the place of a closed one.
    streams = None if agent is not None else claim_standard_streams()
    with StopSignals() as signals:
        rig = replace(machine_rig(), stop=signals, observer=observer)
        clients: StreamClients | CommandClients
        if streams is not None:
            clients = StreamClients(StreamChannel(*streams, signals))
        else:
            command = ClientCommand.parse(
                agent or "", pass_through=environment_names, stderr_path=stderr_path
            )
            if confinement is not None:
                sandbox = sandbox_for(command, confinement)
                command = replace(command, sandbox=sandbox)
                rig = replace(rig, sandbox=sandbox.record)
            clients = CommandClients(command, signals)
        try:
            yield rig, clients
        finally:
            clients.close()


def sandbox_for(command: ClientCommand, confinement: Confinement) -> Sandbox:
    """The sandbox of a client, tested from within.

    Raises SandboxUnavailableError, OperatorError.
    """
    launcher, version = find_launcher()
    package = Path(probebench.__file__).parent
    hidden = Hidden(confinement.session, confinement.config, package)
    sandbox = Sandbox(launcher, version, view_of(command.argv, confinement.binds, hidden))
    require_closed(sandbox, command.argv[0], hidden)
    return sandbox
