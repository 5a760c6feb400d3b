"""Which file system a folder is on, and which of them an operator is warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from probebench.host import folder_probes as disk
from probebench.host.mounts import CAUTIONS, LOCAL, Mount, concern_of, mount_of
from probebench.host.probing import Level, Place, System

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
23 22 0:20 / /mnt rw - tmpfs tmpfs rw
24 22 0:21 / /mnt rw,noexec shared:1 master:2 - nfs4 server:/x rw,vers=4.2
25 24 0:22 / /mnt/with\040space rw - fuse.sshfs host: rw
26 22 0:23 / /mntx rw - overlay overlay rw,lowerdir=/a,upperdir=/b,volatile
a broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/user", "ext4"),
        ("/mnt", "nfs4"),
        ("/mnt/a/b", "nfs4"),
        ("/mnt/with space/a", "fuse.sshfs"),
        ("/mntx/a", "overlay"),
        ("/mntxy", "ext4"),
    ],
)
def test_a_path_lies_on_the_innermost_mount_and_the_latest(path: str, kind: str) -> None:
    mount = mount_of(Path(path), MOUNTS)
    assert mount is not None
    assert mount.kind == kind


def test_where_no_mount_is_listed_none_is_found() -> None:
    assert mount_of(Path("/a"), "") is None


def concern(kind: str, *options: str) -> str:
    return concern_of(Mount(Path("/"), kind, frozenset(options)))


@pytest.mark.parametrize("kind", sorted(LOCAL))
def test_an_ordinary_disk_is_no_concern(kind: str) -> None:
    assert concern(kind, "rw", "relatime", "barrier=1") == ""


@pytest.mark.parametrize("kind", [*sorted(CAUTIONS), "fuse", "fuse.sshfs", "fuseblk", "unheardof"])
def test_another_kind_is_a_concern(kind: str) -> None:
    assert concern(kind, "rw")


@pytest.mark.parametrize(
    "option", ["nobarrier", "barrier=0", "volatile", "fsync=volatile", "nolock"]
)
def test_options_that_make_fsync_or_locks_hollow_are_named(option: str) -> None:
    assert option in concern("ext4", "rw", option)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("tmpfs", "power loss"),
        ("nfs4", "locks"),
        ("cifs", "hard links"),
        ("9p", "fsync"),
        ("fuse.sshfs", "FUSE"),
        ("overlay", "container"),
        ("vfat", "modes"),
    ],
)
def test_a_concern_says_what_does_not_hold(kind: str, words: str) -> None:
    assert words in concern(kind)


class Mounts(System):
    def __init__(self, text: str) -> None:
        self.text = text

    def mounts(self) -> str:
        return self.text


@pytest.mark.parametrize(
    ("kind", "level"), [("ext4", Level.OK), ("tmpfs", Level.NOTE), ("nfs", Level.NOTE)]
)
def test_the_probe_names_kind_and_concern(kind: str, level: Level, tmp_path: Path) -> None:
    system = Mounts(f"22 1 254:0 / / rw - {kind} source rw\n")
    found = disk.file_system(Place(tmp_path, system=system))
    assert found.level is level
    assert found.seen.startswith(f"{kind}, mounted on /")


def test_a_system_that_lists_no_mounts_is_a_note(tmp_path: Path) -> None:
    assert disk.file_system(Place(tmp_path, system=Mounts(""))).level is Level.NOTE


def test_this_system_is_asked_for_its_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probebench.host.probing.MOUNTS", tmp_path / "none")
    assert System().mounts() == ""
    (tmp_path / "none").write_text("listed")
    assert System().mounts() == "listed"
