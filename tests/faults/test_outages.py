"""The power goes off at any step: what the client saw is there, and the rest follows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from probebench.app.session import run_session
from probebench.app.verify import verify_folder
from probebench.host.filesystem import Filesystem
from probebench.host.store import Store
from probebench.kernel.errors import ProbebenchError
from tests.conformance import Case, supersedes
from tests.environments.test_conformance import CASES
from tests.faults.injected import messages_on_disk
from tests.faults.outage import ORDERS, Disk, Order, at_random
from tests.faults.share import WHOLE, Count, share
from tests.rigs import KilledError, RepliesInProcess, constant_rig, folder_bytes

RANDOM = [at_random(seed) for seed in range(12 if WHOLE else 2)]
TOY = CASES["thermometer"]


class Outages:
    """One session, and what outages at each of its steps would leave."""

    def __init__(self, case: Case, root: Path, disk: Disk) -> None:
        self.case, self.root, self.disk = case, root, disk
        self.repeats = not supersedes(case)
        self.client = RepliesInProcess(case.reply)
        self.seen: dict[Path, list[bytes]] = {}  # by what is left: what the client had seen
        (root / "parent").mkdir()
        (root / "left").mkdir()
        case.run(root / "whole")
        self.expected = folder_bytes(root / "whole")

    def run(self, orders: Sequence[Order], *, most: int, resume: bool = False) -> None:
        """Play the session, and lay down what an outage would leave at its steps."""
        steps: list[int] = []
        count = self._steps()
        chosen = set(share(range(count), most))

        def at_step(disk: Disk) -> None:
            if len(steps) in chosen:
                self._lay(disk, f"step {len(steps)}", orders)
            steps.append(1)

        self.disk.at_step = at_step
        self._play(resume=resume)
        self.disk.at_step = None
        self._lay(self.disk, "end", orders)

    def _play(self, *, resume: bool) -> None:
        folder = self.root / "parent" / "session"
        rig = constant_rig(self.disk)
        run_session(rig, folder, self.case.config, self.client, resume=resume)

    def _steps(self) -> int:
        """How many steps a whole session has, by one that is run for it."""
        counted = Counts()
        self.case.run(self.root / "counted", constant_rig(counted))
        shutil.rmtree(self.root / "counted")
        return counted.count

    def _lay(self, disk: Disk, step: str, orders: Sequence[Order]) -> None:
        for order in orders:
            folder = self.root / "left" / f"{step}, {order.name}"
            disk.left(self.root / "parent", folder, order)
            self.seen[folder] = list(self.client.messages)

    def losses(self) -> list[str]:
        """What is wrong with what was left; each is resumed."""
        found = [f"{folder.name}: {fault}" for folder in self.seen for fault in self._wrong(folder)]
        self.disk.release()
        return found

    def _wrong(self, folder: Path) -> list[str]:
        kept = messages_on_disk(folder)
        lost = [f"the client saw {m!r:.60}" for m in self.seen[folder] if m not in kept]
        try:
            self.case.run(folder, resume=True)
        except ProbebenchError as error:
            return [*lost, f"cannot be resumed: {error}"]
        if not self._ends_right(folder):
            lost.append("another end")
        return lost

    def _ends_right(self, folder: Path) -> bool:
        if self.repeats:
            return folder_bytes(folder) == self.expected
        return verify_folder(constant_rig(), folder).verified


class Counts(Filesystem):
    count = 0

    def before(self, step: str, name: str) -> None:
        self.count += 1


@pytest.mark.parametrize("name", CASES)
def test_what_the_client_saw_outlives_an_outage_at_any_step(
    name: str, memory_path: Path, count: Count
) -> None:
    outages = Outages(CASES[name], memory_path, Disk())
    outages.run([*ORDERS, *RANDOM], most=8)
    assert outages.losses() == []
    count("outages, each survived", len(outages.seen), name)


class DiesAt(Disk):
    """Killed, not cut off: what it had written stays in the page cache."""

    def __init__(self, fatal: int) -> None:
        super().__init__()
        self.left_to_do = fatal

    def before(self, step: str, name: str) -> None:
        super().before(step, name)
        self.left_to_do -= 1
        if self.left_to_do == 0:
            raise KilledError


def after_a_kill(root: Path, fatal: int, most: int = 30) -> Outages:
    """A session that is killed, and resumed while outages threaten."""
    outages = Outages(TOY, root, DiesAt(fatal))
    with pytest.raises(KilledError):
        outages._play(resume=False)
    outages.run(ORDERS, most=most, resume=True)
    return outages


@pytest.mark.parametrize("fatal", range(40, 110) if WHOLE else [56, 62, 75])
def test_what_a_kill_left_in_memory_outlives_an_outage_of_the_resumed_session(
    fatal: int, memory_path: Path, count: Count
) -> None:
    outages = after_a_kill(memory_path, fatal)
    assert outages.losses() == []
    count("outages after a kill, each survived", len(outages.seen), "thermometer")


# -- disks and drivers that leave something out, which the checks above must catch ------------


class WithoutFileSync(Disk):
    """Broken on purpose: no content is made durable."""

    def fsync_file(self, descriptor: int, name: str) -> None:
        self.before("fsync_file", name)


class WithoutFolderSync(Disk):
    """Broken on purpose: no entry is made durable."""

    def fsync_folder(self, folder: int, name: str) -> None:
        self.before("fsync_folder", name)


class WithoutTheLastFolderSync(Disk):
    """Broken on purpose: the folder of the turns alone is left out."""

    def fsync_folder(self, folder: int, name: str) -> None:
        if name != "turns":
            super().fsync_folder(folder, name)


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        (WithoutFileSync, "the client saw"),
        (WithoutFileSync, "cannot be resumed"),
        (WithoutFolderSync, "the client saw"),
        (WithoutTheLastFolderSync, "the client saw"),
    ],
)
def test_a_disk_without_an_fsync_loses_what_the_client_saw(
    disk: type[Disk], words: str, memory_path: Path
) -> None:
    outages = Outages(TOY, memory_path, disk())
    outages.run(ORDERS, most=8)
    assert any(words in loss for loss in outages.losses())


def test_a_resume_without_its_fsync_loses_what_the_client_saw(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the link of a response and the fsync of its folder."""
    monkeypatch.setattr(Store, "sync", lambda self: None)
    losses = [
        loss
        for fatal in range(70, 82)
        for loss in after_a_kill(_made(memory_path / str(fatal)), fatal, most=6).losses()
    ]
    assert any("the client saw" in loss for loss in losses)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
