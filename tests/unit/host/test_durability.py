"""What an outage or a kill leaves: whole files or none, and what was published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probebench.host.filesystem import Filesystem
from probebench.host.store import Store, is_temporary
from probebench.kernel.errors import HostError
from tests.unit.host.power import LosesPower, PowerCutError

ITEMS = {"turns/one.json": b"1" * 5000, "turns/two.json": b"2" * 3000, "three.json": b"3"}


class WithoutFileSync(LosesPower):
    """Broken on purpose: the content is never made durable."""

    def fsync_file(self, descriptor: int, name: str) -> None:
        self.before("fsync_file", name)


class WithoutFolderSync(LosesPower):
    """Broken on purpose: no entry is ever made durable."""

    def fsync_folder(self, folder: int, name: str) -> None:
        self.before("fsync_folder", name)


def publish(folder: Path, disk: LosesPower) -> None:
    with Store.create(folder, disk) as store:
        store.publish_all(ITEMS)
        store.publish("turns/last.json", b"last")


def losses(folder: Path, disk: LosesPower) -> list[str]:
    """What is wrong with an outage right after everything was published."""
    left = disk.survivors(folder)
    expected = {**ITEMS, "turns/last.json": b"last"}
    return [name for name, data in expected.items() if left.get(name) != data]


def torn(folder: Path, disk: LosesPower) -> list[str]:
    """Files that a kernel that writes entries early would leave in pieces."""
    disk.kernel_writes_entries_early()
    return [name for name, data in disk.survivors(folder).items() if data == b"torn"]


def cuts(tmp_path: Path, kind: type[LosesPower]) -> Iterator[tuple[Path, LosesPower]]:
    whole = kind()
    publish(tmp_path / "whole", whole)
    for cut in range(len(whole.steps)):
        disk, folder = kind(cut_before=cut), tmp_path / str(cut)
        with pytest.raises(PowerCutError):
            publish(folder, disk)
        if folder.exists():
            yield folder, disk


def test_everything_published_survives_an_outage(tmp_path: Path) -> None:
    disk = LosesPower()
    publish(tmp_path / "a", disk)
    assert losses(tmp_path / "a", disk) == []


@pytest.mark.parametrize("broken", [WithoutFileSync, WithoutFolderSync])
def test_leaving_an_fsync_out_loses_what_was_published(
    tmp_path: Path, broken: type[LosesPower]
) -> None:
    disk = broken()
    publish(tmp_path / "a", disk)
    assert losses(tmp_path / "a", disk) != []


def test_an_outage_at_any_step_leaves_no_torn_file_under_a_final_name(tmp_path: Path) -> None:
    results = [torn(folder, disk) for folder, disk in cuts(tmp_path, LosesPower)]
    assert len(results) > 10
    assert not any(results)


def test_without_the_file_fsync_an_outage_tears_files(tmp_path: Path) -> None:
    assert any(torn(folder, disk) for folder, disk in cuts(tmp_path, WithoutFileSync))


def test_the_folder_itself_and_its_parents_are_made_durable(tmp_path: Path) -> None:
    disk = LosesPower()
    with Store.create(tmp_path / "a" / "b", disk) as store:
        store.publish("one.json", b"1")
    assert disk.survivors(tmp_path) == {"a/b/one.json": b"1"}


def test_the_steps_of_a_publish_come_in_their_order(tmp_path: Path) -> None:
    disk = LosesPower()
    with Store.create(tmp_path / "a", disk) as store:
        disk.steps.clear()
        store.publish("turns/one.json", b"1")
    assert disk.steps == [
        ("make_folder", "turns/"),
        ("fsync_folder", "."),
        ("open_temporary", "turns/one.json"),
        ("write", "turns/one.json"),
        ("fsync_file", "turns/one.json"),
        ("link", "turns/one.json"),
        ("unlink", "turns/one.json"),
        ("fsync_folder", "turns"),
    ]


def test_several_files_cost_one_fsync_of_each_folder(tmp_path: Path) -> None:
    disk = LosesPower()
    with Store.create(tmp_path / "a", disk) as store:
        disk.steps.clear()
        store.publish_all({f"turns/{i}.json": b"x" for i in range(10)})
    assert [step for step, _ in disk.steps].count("fsync_file") == 10
    assert disk.steps.count(("fsync_folder", "turns")) == 1


def test_a_resume_makes_durable_what_a_kill_left_in_the_page_cache(tmp_path: Path) -> None:
    first = LosesPower()
    with Store.create(tmp_path / "a", first) as store:
        store.publish("turns/one.json", b"1")
        first.cut_before = len(first.steps) + 5  # the last fsync, of the folder
        with pytest.raises(PowerCutError):
            store.publish("turns/two.json", b"2")
    assert "turns/two.json" not in first.survivors(tmp_path / "a")
    first.cut_before = None
    with Store.open(tmp_path / "a", first) as store:
        assert store.read("turns/two.json") == b"2"
        store.sync()
    assert first.survivors(tmp_path / "a")["turns/two.json"] == b"2"


def test_a_kill_at_any_step_leaves_whole_files_and_temporaries_that_can_be_told(
    tmp_path: Path,
) -> None:
    for folder, _ in cuts(tmp_path, LosesPower):
        with Store.open(folder, Filesystem()) as store:
            store.discard_temporaries()
            names = [name for name in store.names() if not name.endswith("/")]
            assert not any(is_temporary(name) for name in names)
            assert all(store.read(name) == ITEMS.get(name, b"last") for name in names)


def test_a_reader_finds_a_half_published_record_sound_before_any_resume(tmp_path: Path) -> None:
    disk = LosesPower()
    with Store.create(tmp_path / "a", disk) as store:
        disk.cut_before = len(disk.steps) + 4  # between link and unlink
        with pytest.raises(PowerCutError):
            store.publish("one.json", b"1")
    with Store.open_readonly(tmp_path / "a") as store:
        assert store.read("one.json") == b"1"
        assert store.names() == [".one.json.publishing", "one.json"]
        assert store.anomalies() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from probebench.host.store import Filesystem, Store

class Kills(Filesystem):
    left = int(sys.argv[2])
    def before(self, step, name):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

with Store.create(Path(sys.argv[1]), Kills()) as store:
    store.publish("turns/one.json", b"1" * 100_000)
"""


def test_a_real_sigkill_at_each_step_leaves_an_unlocked_folder_that_can_be_completed(
    tmp_path: Path,
) -> None:
    for cut in range(11):
        folder = tmp_path / str(cut)
        ran = subprocess.run([sys.executable, "-c", KILLED, folder, str(cut)], check=False)
        assert ran.returncode == (-signal.SIGKILL if ran.returncode else 0)
        if not folder.exists():
            continue
        with Store.open(folder, Filesystem()) as store:
            store.discard_temporaries()
            store.sync()
            if not store.exists("turns/one.json"):
                store.publish("turns/one.json", b"1" * 100_000)
            assert store.names() == ["turns/one.json"]
            assert store.read("turns/one.json") == b"1" * 100_000
    assert ran.returncode == 0, "the last count is beyond the steps of a whole run"


# -- refusals of the system -------------------------------------------------------


class Fails(Filesystem):
    """Raises at one step, once; counts the calls."""

    def __init__(self, step: str, number: int) -> None:
        self._step = step
        self._number = number
        self.calls: list[str] = []

    def before(self, step: str, name: str) -> None:
        self.calls.append(step)
        if step == self._step:
            raise OSError(self._number, os.strerror(self._number))


STEPS = ["make_folder", "open_temporary", "write", "fsync_file", "link", "unlink", "fsync_folder"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("number", [5, 28])  # EIO, ENOSPC
def test_a_refused_step_is_an_error_that_names_it_and_ends_publishing(
    tmp_path: Path, step: str, number: int
) -> None:
    (tmp_path / "a").mkdir()
    disk = Fails(step, number)
    words = step.replace("_", " ")
    with Store.open(tmp_path / "a", disk) as store:
        with pytest.raises(HostError, match=rf"cannot {words} '.*': {os.strerror(number)}"):
            store.publish("turns/one.json", b"1")
        calls = len(disk.calls)
        with pytest.raises(HostError, match="nothing more is published"):
            store.publish("two.json", b"2")
        assert len(disk.calls) == calls, "no step is tried again"


def test_short_writes_are_continued(tmp_path: Path) -> None:
    class WritesLittle(Filesystem):
        def write_some(self, descriptor: int, data: memoryview) -> int:
            return super().write_some(descriptor, data[:7])

    with Store.create(tmp_path / "a", WritesLittle()) as store:
        store.publish("one.json", bytes(range(100)))
        assert store.read("one.json") == bytes(range(100))


def test_a_writer_that_ignores_short_writes_is_caught(tmp_path: Path) -> None:
    class WritesOnce(Filesystem):
        def write(self, descriptor: int, data: bytes, name: str) -> None:
            os.write(descriptor, data[:7])

    with Store.create(tmp_path / "a", WritesOnce()) as store:
        store.publish("one.json", bytes(range(100)))
        assert store.read("one.json") != bytes(range(100))


def test_a_publish_goes_on_through_signals_that_do_not_stop_it(tmp_path: Path) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        with Store.create(tmp_path / "a", Filesystem()) as store:
            while len(seen) < 50:
                store.publish(f"turns/{len(store.names())}.json", b"x" * 100_000)
            assert all(store.read(name) == b"x" * 100_000 for name in store.names())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
