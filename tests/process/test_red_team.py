"""What a hostile client reaches without a sandbox, exactly, and within one: nothing.

docs/security.md has the same table, and is compared with it.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import probebench
from probebench.app.registry import default_registry
from probebench.host import sandbox_view
from tests.environments.optical.protocol_page import table
from tests.process import red_team
from tests.process.boxes import NEEDS_BWRAP
from tests.process.drivers import DIRECT, REPOSITORY, write_config

EVERYTHING = {attack.__name__ for attack in red_team.ATTACKS} | {"outliving"}
# The driver is out of reach of its own user; root reads it all the same.
KEPT_BY_THE_SHIELD = {
    "driver_environment",
    "driver_maps",
    "driver_memory",
    "driver_descriptors",
    "driver_trace",
    "outliving",
}
KEPT_BY_CLEAN_STARTS = {"own_environment", "inherited_descriptors", "controlling_terminal"}
# Of root alone, and where the machine lets its users make namespaces.
DEPENDS_ON_THE_MACHINE = {"kernel_settings", "new_namespaces", "outside_interfaces"}
OPEN_WITHOUT_A_SANDBOX = (
    EVERYTHING - KEPT_BY_THE_SHIELD - KEPT_BY_CLEAN_STARTS - DEPENDS_ON_THE_MACHINE
)
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


@dataclass
class Target:
    """Everything that there is to be reached, and the driver that guards it."""

    folder: Path
    hints: dict[str, Any]
    environment: dict[str, str]
    patches: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)

    def attacked(self, *options: str) -> set[str]:
        """Play a session against the hostile client; returns what it reached."""
        ran = self.played(*options)
        assert ran.returncode == 0, ran.stderr
        lines = (self.folder / "report.jsonl").read_text().splitlines()
        reports = [json.loads(line) for line in lines]
        assert [report["attack"] for report in reports] == [
            attack.__name__ for attack in red_team.ATTACKS
        ]
        reached = {report["attack"] for report in reports if report["reached"]}
        if not Path(self.hints["outside"], "written").exists():
            reached.discard("writing_elsewhere")  # it was a folder of the sandbox's
        return reached | ({"outliving"} if self.left_behind() else set())

    def played(self, *options: str) -> subprocess.CompletedProcess[bytes]:
        program = shutil.copy(red_team.__file__, self.folder)
        agent = shlex.join(["python", str(program), json.dumps(self.hints)])
        words = ["session", "--config", self.hints["config"], "--output", self.hints["session"]]
        words += ["--agent", agent, "--agent-stderr", str(self.folder / "report.jsonl"), *options]
        start = "\n".join([*self.patches, "from probebench.cli import main", "main()"])
        return subprocess.run(
            [*self.user, sys.executable, "-c", start, *words],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            check=False,
            timeout=120,
        )

    def left_behind(self) -> list[int]:
        marker = self.hints["marker"].encode()
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                try:
                    words = (path / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if marker in words:
                    found.append(int(path.name))
        return found


def hidden_modules() -> list[str]:
    """Whatever docs/architecture.toml says that an environment hides."""
    rules = tomllib.loads((REPOSITORY / "docs/architecture.toml").read_text(encoding="utf-8"))
    return [f"{row['environment']}.{name}" for row in rules["hidden"] for name in row["modules"]]


def hidden_files() -> list[Path]:
    """The source of those, and whatever data lies beside any environment's."""
    root = Path(probebench.__file__).parent.parent
    sources = [root.joinpath(*name.split(".")).with_suffix(".py") for name in hidden_modules()]
    beside = [p for p in (root / "probebench/environments").rglob("*") if p.is_file()]
    return [*sources, *(p for p in beside if p.suffix not in (".py", ".pyc"))]


def test_there_is_something_hidden_of_each_environment() -> None:
    assert all(path.is_file() for path in hidden_files())
    named = {name.split(".")[2] for name in hidden_modules()}
    assert named >= set(default_registry())


def as_an_ordinary_user() -> list[str]:
    """Root could read any process: take its capabilities away, as a user has none."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("as root, needs setpriv (Debian package util-linux)")
    # Without CAP_SETFCAP the kernel lets nobody map root into a new namespace.
    return [setpriv, "--bounding-set=-all,+setfcap", "--inh-caps=-all", "--"]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    secret, marker = secrets.token_hex(16), f"left-{secrets.token_hex(8)}"
    (tmp_path / "outside").mkdir()
    (tmp_path / "operator").mkdir()
    config = write_config(tmp_path / "operator" / "secret.json")
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.socket())
        tcp.bind(("127.0.0.1", 0))
        abstract = f"red-team-{secret}"
        for name in ("\0" + abstract, str(tmp_path / "s")):
            unix = stack.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(name)
            unix.listen()
        tcp.listen()
        neighbour = stack.enter_context(tempfile.NamedTemporaryFile())
        hints = {
            "config": str(config),
            "checked_in": str(DIRECT),
            "session": str(tmp_path / "operator" / "session"),
            "hidden_modules": hidden_modules(),
            "hidden_files": [*map(str, hidden_files())],
            "checkout": [str(REPOSITORY / name) for name in sandbox_view.CHECKOUT],
            "neighbour": Path(neighbour.name).name,
            "secret": secret,
            "marker": marker,
            "port": tcp.getsockname()[1],
            "abstract": abstract,
            "socket": str(tmp_path / "s"),
            "outside": str(tmp_path / "outside"),
        }
        target = Target(tmp_path, hints, {**os.environ, "SECRET_OF_THE_OPERATOR": secret})
        try:
            yield target
        finally:
            for pid in target.left_behind():
                os.kill(pid, 9)


def test_without_a_sandbox_it_reaches_exactly_what_the_page_says(target: Target) -> None:
    target.user = as_an_ordinary_user()
    assert target.attacked() - DEPENDS_ON_THE_MACHINE == OPEN_WITHOUT_A_SANDBOX


@NEEDS_BWRAP
@pytest.mark.parametrize("user", ["whoever runs the tests", "an ordinary user"])
def test_within_the_sandbox_it_reaches_nothing(user: str, target: Target) -> None:
    if user == "an ordinary user":
        target.user = as_an_ordinary_user()
    assert target.attacked("--sandbox") == set()


NO_SHIELD = "from probebench.app import machine\nmachine.shield = lambda: None"


def test_without_the_shield_it_reads_the_driver(target: Target) -> None:
    target.patches.append(NO_SHIELD)
    target.user = as_an_ordinary_user()
    # Yama keeps a child from tracing its parent, where it is on.
    traceable = not YAMA.exists() or YAMA.read_text().strip() == "0"
    expected = KEPT_BY_THE_SHIELD - (set() if traceable else {"driver_trace", "driver_memory"})
    assert target.attacked() >= expected


UNTESTED = "from probebench.app import machine\nmachine.require_closed = lambda *_: None"
WITHOUT = (
    "import functools\n"
    "from probebench.app import machine\n"
    "from probebench.host import sandbox\n"
    "kept = tuple(word for word in sandbox.ISOLATION if word not in {left_out!r})\n"
    "machine.Sandbox = functools.partial(sandbox.Sandbox, isolation=kept)"
)
CONFIGS_SHOWN = (
    "import dataclasses\n"
    "from probebench.app import machine\n"
    "view_of = machine.view_of\n"
    "def careless(*terms):\n"
    "    view = view_of(*terms)\n"
    f"    return dataclasses.replace(view, folders=(*view.folders, {str(REPOSITORY / 'configs')!r}))\n"
    "machine.view_of = careless"
)
ROOMY = "from probebench.host import sandbox, sandbox_check\nsandbox.SCRATCH_BYTES *= 2"
SETTABLE = (
    "from probebench.host import sandbox\n"
    "mounts = sandbox._mounts\n"
    "def careless(view):\n"
    "    words = list(mounts(view))\n"
    "    place = words.index('/proc', words.index('--remount-ro'))\n"
    "    return words[: place - 1] + words[place + 1 :]\n"
    "sandbox._mounts = careless"
)
WEAKENED = {
    "with the network": (
        WITHOUT.format(left_out=["--unshare-net"]),
        {"loopback", "abstract_socket"},
    ),
    "with the processes": (
        WITHOUT.format(left_out=["--unshare-pid"]),
        {"driver_command_line", "driver_signals"},
    ),
    "with namespaces to be made": (
        WITHOUT.format(left_out=["--disable-userns"]),
        {"new_namespaces"},
    ),
    "with the checked-in configurations": (CONFIGS_SHOWN, {"checked_in_configuration"}),
    "with twice the room": (ROOMY, {"filling_the_disk"}),
}
if os.geteuid() == 0:  # others cannot write them anyway
    WEAKENED["with the kernel's settings"] = (SETTABLE, {"kernel_settings"})


@NEEDS_BWRAP
@pytest.mark.parametrize("weakness", WEAKENED)
def test_a_weakened_sandbox_is_caught_by_the_client(weakness: str, target: Target) -> None:
    patch, expected = WEAKENED[weakness]
    target.patches += [patch, UNTESTED]
    assert target.attacked("--sandbox") >= expected


@NEEDS_BWRAP
@pytest.mark.parametrize("weakness", WEAKENED)
def test_a_weakened_sandbox_fails_its_own_test_and_nothing_begins(
    weakness: str, target: Target
) -> None:
    target.patches.append(WEAKENED[weakness][0])
    ran = target.played("--sandbox")
    assert ran.returncode == 7, ran.stderr
    assert b"the sandbox leaves within reach: " in ran.stderr
    assert not Path(target.hints["session"]).exists()
    assert not (target.folder / "report.jsonl").exists()


PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_page_has_the_same_table() -> None:
    words = {"reached": True, "not reached": False}
    listed = {
        cells[0].strip("`"): (words.get(cells[2]), words[cells[3]])
        for cells in table(PAGE, "Attack")
    }
    without = {
        name: None if name in DEPENDS_ON_THE_MACHINE else name in OPEN_WITHOUT_A_SANDBOX
        for name in EVERYTHING
    }
    assert listed == {name: (reached, False) for name, reached in without.items()}
