"""A session folder: its lock, its names, and what it refuses to read."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from pathlib import Path

import pytest

from probebench.host import folder as folders
from probebench.host.filesystem import Filesystem
from probebench.host.store import Anomaly, Store, is_temporary
from probebench.kernel.errors import (
    ArtifactError,
    ExitCode,
    FolderLockedError,
    HostError,
    OperatorError,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store.create(tmp_path / "session", Filesystem()) as store:
        store.publish("study.json", b"{}\n")
        store.publish("turns/turn_0001_input.json", b"[]\n")
    return tmp_path / "session"


def refused(folder: Path, name: str) -> str:
    with Store.open_readonly(folder) as store, pytest.raises(ArtifactError) as caught:
        store.read(name)
    assert caught.value.artifact == name
    return str(caught.value)


# -- names and contents -------------------------------------------------------


def test_what_was_published_is_read_back(folder: Path) -> None:
    with Store.open_readonly(folder) as store:
        assert store.names() == ["study.json", "turns/turn_0001_input.json"]
        assert store.read("turns/turn_0001_input.json") == b"[]\n"
        assert store.exists("study.json")
        assert not store.exists("turns/turn_0002_input.json")
        assert not store.exists("nowhere/at_all.json")
        assert store.anomalies() == []


def test_files_and_folders_are_for_their_owner_alone(folder: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert modes == {"turns": 0o700, "study.json": 0o600, "turn_0001_input.json": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_name_that_is_taken_is_never_replaced(folder: Path) -> None:
    with Store.open(folder, Filesystem()) as store:
        with pytest.raises(HostError, match=r"cannot link 'study\.json': File exists"):
            store.publish("study.json", b"other")
        assert store.read("study.json") == b"{}\n"
        with pytest.raises(HostError, match="nothing more is published"):
            store.publish("free.json", b"")


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../up.json", "a/../b", "a//b", ".hidden", "a/", "-a", "a\nb", "ä"]
)
def test_a_name_that_leads_elsewhere_is_neither_published_nor_read(folder: Path, name: str) -> None:
    with Store.open(folder, Filesystem()) as store:
        with pytest.raises(HostError, match="no name of a file in a session folder"):
            store.publish(name, b"")
        with pytest.raises(ArtifactError, match="no name of a file in a session folder"):
            store.read(name)
        with pytest.raises(ArtifactError, match="no name of a file in a session folder"):
            store.exists(name)


def test_an_empty_file_and_many_folders_can_be_published(tmp_path: Path) -> None:
    items = {f"source/p{i % 7}/q/m{i}.py": b"" if i else b"x" for i in range(300)}
    with Store.create(tmp_path / "a", Filesystem()) as store:
        store.publish_all(items)
        assert store.names() == sorted(items)
        assert store.read("source/p1/q/m1.py") == b""


def test_a_file_that_is_too_large_is_refused_both_ways(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_FILE_BYTES", 2)
    assert "more than 2 bytes" in refused(folder, "study.json")
    monkeypatch.setattr("probebench.host.store.MAX_FILE_BYTES", 2)
    with (
        Store.open(folder, Filesystem()) as store,
        pytest.raises(HostError, match="3 bytes exceed 2"),
    ):
        store.publish("big.json", b"123")


# -- opening and locking --------------------------------------------------------


def test_a_folder_with_something_in_it_is_refused_and_left_alone(folder: Path) -> None:
    with pytest.raises(OperatorError, match="not empty; go on with it with --resume"):
        Store.create(folder, Filesystem())
    Store.open(folder, Filesystem()).close()  # the lock was given back


def test_an_empty_folder_and_missing_parents_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    Store.create(tmp_path / "empty", Filesystem()).close()
    Store.create(tmp_path / "a" / "b" / "c", Filesystem()).close()
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for opened in (tmp_path / "file", tmp_path / "missing"):
        with pytest.raises(OperatorError, match="there is no folder"):
            Store.open(opened, Filesystem())
    with pytest.raises(OperatorError, match="there is no folder"):
        Store.create(tmp_path / "file", Filesystem())
    with pytest.raises(HostError, match="Not a directory"):
        Store.create(tmp_path / "file" / "inner", Filesystem())


def test_a_second_driver_is_refused_at_once(folder: Path) -> None:
    with Store.open(folder, Filesystem()):
        with pytest.raises(FolderLockedError, match="in use by another driver") as caught:
            Store.open(folder, Filesystem())
        with pytest.raises(FolderLockedError):
            Store.create(folder, Filesystem())
        with pytest.raises(FolderLockedError):
            Store.open_readonly(folder)
    assert caught.value.exit_code is ExitCode.LOCKED
    Store.open(folder, Filesystem()).close()


def test_readers_share_a_folder_and_keep_drivers_out(folder: Path) -> None:
    with Store.open_readonly(folder), Store.open_readonly(folder), pytest.raises(FolderLockedError):
        Store.open(folder, Filesystem())


def test_the_lock_outlives_the_descriptors_of_reads(folder: Path) -> None:
    with Store.open(folder, Filesystem()) as store:
        store.read("study.json")
        store.names()
        store.publish("more.json", b"")
        with pytest.raises(FolderLockedError):
            Store.open(folder, Filesystem())


def test_a_folder_within_has_a_lock_of_its_own(folder: Path) -> None:
    with Store.open(folder, Filesystem()) as outer:
        with Store.create(folder / "tasks" / "one", Filesystem()) as inner:
            inner.publish("study.json", b"1")
        path = outer.subfolder("tasks/one")
        with Store.open_readonly(path) as inner:
            assert inner.read("study.json") == b"1"
        assert "tasks/one/study.json" in outer.names()


def test_a_folder_within_must_be_a_folder(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "turns")
    with Store.open_readonly(folder) as store:
        for name, reason in (
            ("missing", "missing"),
            ("study.json", "not a folder"),
            ("link", "not a folder"),
        ):
            with pytest.raises(ArtifactError, match=reason) as caught:
                store.subfolder(name)
            assert caught.value.artifact == f"{name}/"


def test_a_store_opened_for_reading_writes_nothing(folder: Path) -> None:
    with Store.open_readonly(folder) as store, pytest.raises(HostError, match="opened for reading"):
        store.publish("new.json", b"")
    assert not (folder / "new.json").exists()


def test_a_folder_without_write_permission_is_read_and_verified(folder: Path) -> None:
    for path in (folder / "turns", folder):
        path.chmod(0o500)
    before = {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
    with Store.open_readonly(folder) as store:
        assert [store.read(name) for name in store.names()] == [b"{}\n", b"[]\n"]
    assert before == {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
    folder.chmod(0o700)
    (folder / "turns").chmod(0o700)


# -- what is left behind ----------------------------------------------------------


def test_opening_touches_nothing_and_what_a_killed_run_left_is_removed_when_asked(
    folder: Path,
) -> None:
    left = {".manifest.json.publishing", "turns/.turn_0002_input.json.publishing"}
    for name in left:
        (folder / name).write_bytes(b"half")
    with Store.open(folder, Filesystem()) as store:
        assert {name for name in store.names() if is_temporary(name)} == left
        assert set(store.discard_temporaries()) == left
        assert store.names() == ["study.json", "turns/turn_0001_input.json"]


def test_only_the_other_name_of_the_same_file_is_finished(folder: Path) -> None:
    temporary = folder / ".study.json.publishing"
    with Store.open(folder, Filesystem()) as store:
        store.finish("study.json")
        store.finish("missing.json")
        temporary.write_bytes(b"somebody else's")
        store.finish("study.json")
        assert temporary.read_bytes() == b"somebody else's"
        temporary.unlink()
        os.link(folder / "study.json", temporary)
        store.finish("study.json")
        assert not temporary.exists()
        assert store.read("study.json")


@pytest.mark.parametrize(
    ("name", "temporary"),
    [
        (".study.json.publishing", True),
        ("turns/.turn_0001_input.json.publishing", True),
        ("study.json.publishing", False),
        (".publishing", False),
        (".study.json", False),
        ("turns/..publishing", False),
    ],
)
def test_only_the_fixed_pattern_is_a_temporary(name: str, *, temporary: bool) -> None:
    assert is_temporary(name) is temporary


def test_a_driver_that_cannot_clear_up_says_so(folder: Path) -> None:
    class RefusesUnlink(Filesystem):
        def before(self, step: str, name: str) -> None:
            if step == "unlink":
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (folder / ".study.json.publishing").write_bytes(b"")
    with (
        Store.open(folder, RefusesUnlink()) as store,
        pytest.raises(HostError, match=r"cannot unlink '\.study\.json\.publishing': Read-only"),
    ):
        store.discard_temporaries()


def test_a_filesystem_that_cannot_lock_is_a_host_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = open_descriptors()
    with pytest.raises(HostError, match=r"cannot lock the folder .*No locks available"):
        Store.open(folder, Filesystem())
    assert open_descriptors() == before


# -- what no store makes ------------------------------------------------------------


def test_a_symbolic_link_is_not_followed(folder: Path) -> None:
    (folder / "copy.json").write_bytes(b"{}\n")
    (folder / "study.json").unlink()
    (folder / "study.json").symlink_to("copy.json")
    assert "symbolic link" in refused(folder, "study.json")


def test_a_folder_that_is_a_link_is_not_followed(folder: Path) -> None:
    (folder / "turns").rename(folder.parent / "elsewhere")
    (folder / "turns").symlink_to(folder.parent / "elsewhere")
    assert "lies behind" in refused(folder, "turns/turn_0001_input.json")
    with Store.open(folder, Filesystem()) as store:
        assert store.names() == ["study.json", "turns"]
        with pytest.raises(HostError, match="cannot publish in 'turns/'"):
            store.publish("turns/turn_0002_input.json", b"")
    assert [path.name for path in (folder.parent / "elsewhere").iterdir()] == [
        "turn_0001_input.json"
    ]


def test_a_fifo_is_refused_and_does_not_hang_the_reader(folder: Path) -> None:
    (folder / "study.json").unlink()
    os.mkfifo(folder / "study.json")
    assert "a FIFO, not a regular file" in refused(folder, "study.json")


def test_a_folder_and_a_socket_in_place_of_a_file_are_refused(folder: Path) -> None:
    (folder / "study.json").unlink()
    (folder / "study.json").mkdir()
    assert "a folder, not a regular file" in refused(folder, "study.json")
    (folder / "study.json").rmdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "study.json"))
        assert "cannot be read" in refused(folder, "study.json")


def test_a_file_under_two_names_is_refused(folder: Path) -> None:
    os.link(folder / "study.json", folder / "copy.json")
    assert "2 hard links" in refused(folder, "study.json")


def test_a_missing_file_is_named(folder: Path) -> None:
    assert refused(folder, "manifest.json") == "manifest.json: it is missing"


def test_every_anomaly_is_found_and_described(folder: Path) -> None:
    (folder / "empty" / "inner").mkdir(parents=True)
    (folder / "link").symlink_to("study.json")
    os.mkfifo(folder / "turns" / "fifo")
    os.link(folder / "study.json", folder / "turns" / "copy")
    with Store.open_readonly(folder) as store:
        assert store.anomalies() == [
            Anomaly("empty/inner/", "it is an empty folder"),
            Anomaly("link", "it is a symbolic link, not a regular file"),
            Anomaly("study.json", "it has 2 hard links; one is expected"),
            Anomaly("turns/copy", "it has 2 hard links; one is expected"),
            Anomaly("turns/fifo", "it is a FIFO, not a regular file"),
        ]
        assert {"empty/inner/", "link", "turns/fifo", "turns/copy"} < set(store.names())


def test_a_name_that_no_store_writes_is_shown_escaped(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff\x1b[2J \\")).write_bytes(b"")
    with Store.open_readonly(folder) as store:
        assert store.names()[0] == "study.json"
        assert store.names()[-1] == "\\xff\\x1b[2J\\x20\\x5c"


def test_a_folder_that_is_absurdly_deep_is_named_and_not_entered(folder: Path) -> None:
    deep = folder.joinpath(*["d"] * 40)
    deep.mkdir(parents=True)
    with Store.open_readonly(folder) as store:
        (anomaly,) = store.anomalies()
    assert "more than 32 folders deep" in anomaly.reason
    assert len(anomaly.name) < 100


def open_descriptors() -> list[str]:
    return sorted(path.name for path in Path("/dev/fd").iterdir())


def test_descriptors_are_closed(folder: Path) -> None:
    before = open_descriptors()
    with Store.open(folder, Filesystem()) as store:
        store.publish_all({"a/b.json": b"", "c.json": b""})
        store.sync()
        store.anomalies()
        for name in ("missing", "a/missing", "x/y"):
            with pytest.raises(ArtifactError):
                store.read(name)
        with pytest.raises(HostError):
            store.publish_all({"new.json": b"", "c.json": b""})
    assert open_descriptors() == before
