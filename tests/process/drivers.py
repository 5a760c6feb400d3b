"""Start the driver as a user does, and speak to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from probebench.cli import main

REPOSITORY = Path(__file__).parents[2]
SCRIPTED = "python -m probebench.clients.scripted"
ZERO = [0.0] * 6
DEVELOPMENT = REPOSITORY / "configs/agent_protocol_development.json"
DIRECT = REPOSITORY / "configs/agent_protocol_development_direct.json"
STRESS = REPOSITORY / "configs/agent_protocol_stress.json"


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "probebench", *map(str, words)]


def run(
    *words: str | Path, stdin: bytes = b"", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run one command to its end."""
    return subprocess.run(
        command(*words), input=stdin, capture_output=True, check=False, timeout=120, **options
    )


def run_forked(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run one command in a fork of this process: whole, but for the start of Python."""
    with TemporaryFile() as output, TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os._exit(_main(words, output.fileno(), errors.fileno()))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return subprocess.CompletedProcess(words, code, content(output), content(errors))


def content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _main(words: Sequence[str | Path], output: int, errors: int) -> int:
    code: Any = 70
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
        os.dup2(descriptor, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = ["probebench", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - a child must not run on into pytest
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code)


def write_config(path: Path, **changes: Any) -> Path:
    """A development configuration; dotted names in ``changes`` with __ for the dots."""
    name = "agent_protocol_development.json"
    config = json.loads((REPOSITORY / "configs" / name).read_text())
    for dotted, value in changes.items():
        place = config
        *parents, last = dotted.split("__")
        for parent in parents:
            place = place[parent]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    path.write_text(json.dumps(config))
    return path


class Driver:
    """A driver over its own streams."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.receive_line())
        return message

    def receive_line(self) -> bytes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), "the driver sent no message"
        return line

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def act(
        self, request: dict[str, Any], name: str, command_opd_nm: Sequence[float] | None = None
    ) -> None:
        action = {
            "protocol": request["protocol"],
            "request_id": request["request_id"],
            "action": name,
        }
        if command_opd_nm is not None:
            action["command_opd_nm"] = list(command_opd_nm)
        self.send(json.dumps(action).encode() + b"\n")

    def finish(self) -> tuple[int, bytes, bytes]:
        """Close its input and await its end: exit code, the rest of its output, its errors."""
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


@contextmanager
def driver(*words: str | Path, **options: Any) -> Iterator[Driver]:
    """A driver whose streams are ours."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(*words), **{**pipes, **options}) as process:
        try:
            yield Driver(process)
        finally:
            if process.poll() is None:
                process.kill()


def play(
    speaker: Driver, decide: Callable[[dict[str, Any]], tuple[str, Sequence[float] | None]]
) -> dict[str, Any]:
    """Answer every request by ``decide``; returns the final message."""
    while (message := speaker.receive())["kind"] != "final":
        speaker.act(message, *decide(message))
    return message


def scripted(request: dict[str, Any]) -> tuple[str, Sequence[float] | None]:
    """What the supplied scripted client does, written a second time."""
    result = request["last_result"]
    if result is not None and result["kind"] == "estimated":
        return "submit", result["fit"]["suggested_command_opd_nm"]
    if request["resources"]["spent"]["exposures"] == 1:
        return "expose", [80, 0, 0, 0, 0, 0]
    return ("estimate", None) if "estimate" in request["available_actions"] else ("submit", ZERO)


def agent(tmp_path: Path, program: str) -> str:
    """The command of a client that is this Python program."""
    path = tmp_path / "agent.py"
    path.write_text(program)
    return f"python {path}"


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, **changes}


def evaluator(folder: Path) -> Any:
    return json.loads((folder / "evaluator.json").read_bytes())


def unfinished(folder: Path, config: Path = DIRECT) -> None:
    with driver("session", "--config", config, "--output", folder) as speaker:
        speaker.receive()
        speaker.process.kill()
