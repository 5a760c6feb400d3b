"""Which file system a folder is on, and what is known of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs"}
MEMORY = "it is kept in memory: no session in it outlives a power loss or a restart"
NFS = (
    "it is on a network: locks keep a second driver out only where server and mount options pass "
    "them on, and what another machine sees may lag behind; use a local disk"
)
SHARE = "it is on a network: hard links, locks and fsync are what its server makes of them"
FOREIGN = "it has no hard links or no file modes, or keeps them in a way of its own"
CAUTIONS = {
    "tmpfs": MEMORY,
    "ramfs": MEMORY,
    "nfs": NFS,
    "nfs4": NFS,
    "cifs": SHARE,
    "smb3": SHARE,
    "smbfs": SHARE,
    "afs": SHARE,
    "ceph": SHARE,
    "lustre": SHARE,
    "glusterfs": SHARE,
    "beegfs": SHARE,
    "gpfs": SHARE,
    "9p": "it is shared by the host of a virtual machine: fsync and locks reach as far as the "
    "host passes them on",
    "virtiofs": "it is shared by the host of a virtual machine: fsync and locks reach as far as "
    "the host passes them on",
    "overlay": "it is the file system of a container, which goes with the container; keep "
    "sessions in a mounted volume",
    "vfat": FOREIGN,
    "msdos": FOREIGN,
    "exfat": FOREIGN,
    "ntfs3": FOREIGN,
}
PROGRAM = "a program is behind it (FUSE), and fsync and locks are what that program makes of them"
# With these, fsync returns before the disk has what it was given, or locks are
# known to one machine alone.  Linux has spelled overlay's in two ways.
HOLLOW = {"nobarrier", "barrier=0", "volatile", "fsync=volatile", "nolock"}


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo.  options: of the mount and of the file system."""

    point: Path
    kind: str
    options: frozenset[str]


def mount_of(path: Path, mounts: str) -> Mount | None:
    """The mount that a path without links lies on, or None where none is listed."""
    found = [mount for mount in _parsed(mounts) if path.is_relative_to(mount.point)]
    # A later mount on the same point hides the earlier one.
    return max(reversed(found), key=lambda mount: len(mount.point.parts), default=None)


def concern_of(mount: Mount) -> str:
    """What does not hold on such a mount, or ""."""
    if hollow := sorted(HOLLOW & mount.options):
        return f"it is mounted with {', '.join(hollow)}: fsync or locks do not do what they say"
    if mount.kind in LOCAL:
        return ""
    if mount.kind.startswith("fuse"):
        return PROGRAM
    return CAUTIONS.get(mount.kind, "nothing is known here of this kind")


def _parsed(mounts: str) -> Iterator[Mount]:
    for line in mounts.splitlines():
        here, _, there = line.partition(" - ")
        before, after = here.split(" "), there.split(" ")
        if len(before) >= 6 and len(after) >= 3:
            options = frozenset((before[5] + "," + after[2]).split(","))
            yield Mount(Path(_unescaped(before[4])), after[0], options)


def _unescaped(text: str) -> str:
    """Spaces and the like are written as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
