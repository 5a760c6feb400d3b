"""Sessions on a real small disk that runs full; started in a mount namespace of its own.

    unshare -rm python -m tests.faults.full_disk FOLDER CASE DISK MOST

mounts a tmpfs on FOLDER, of so many pages or of so many inodes that the session
does not fit, plays the case there, makes room, resumes, and prints one line of
JSON a limit, for at most MOST limits of each kind.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from probebench import cli
from probebench.app.session import run_session
from probebench.host.filesystem import Filesystem
from probebench.kernel.errors import ProbebenchError
from tests.conformance import Case
from tests.environments.test_conformance import CASES
from tests.faults.injected import messages_on_disk
from tests.faults.share import share
from tests.rigs import RepliesInProcess, constant_rig, folder_bytes

PAGE = 4096
ROOMY = "size=64m,nr_inodes=10000"


class CountsShortWrites(Filesystem):
    short = 0

    def write_some(self, descriptor: int, data: memoryview) -> int:
        count = super().write_some(descriptor, data)
        self.short += count < len(data)
        return count


class IgnoresShortWrites(CountsShortWrites):
    """Broken on purpose: what did not fit is left out."""

    def write(self, descriptor: int, data: bytes, name: str) -> None:
        with self.step("write", name):
            self.write_some(descriptor, memoryview(data))


DISKS = {"genuine": CountsShortWrites, "ignores short writes": IgnoresShortWrites}


def options(kind: str, limit: int) -> str:
    if kind == "pages":
        return f"size={limit * PAGE},nr_inodes=10000"
    return f"size=64m,nr_inodes={limit}"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def need(case: Case, place: Path, kind: str) -> int:
    """How much a whole session takes."""
    mount("-t", "tmpfs", "-o", ROOMY, "probebench", str(place))
    before = os.statvfs(place)
    case.run(place / "session")
    after = os.statvfs(place)
    subprocess.run(["umount", str(place)], check=True)
    return before.f_bfree - after.f_bfree if kind == "pages" else before.f_ffree - after.f_ffree


def on_a_full_disk(
    case: Case, place: Path, disk: CountsShortWrites, kind: str, limit: int
) -> dict[str, Any]:
    """One session that runs out of room, and goes on once there is some."""
    mount("-t", "tmpfs", "-o", options(kind, limit), "probebench", str(place))
    folder, client = place / "session", RepliesInProcess(case.reply)

    def play(*, standalone_mode: bool) -> int:
        assert not standalone_mode
        run_session(constant_rig(disk), folder, case.config, client, resume=True)
        return 0

    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = cli._code_of(play, as_json=False)  # type: ignore[arg-type]
    recorded = messages_on_disk(folder)
    mount("-o", f"remount,{ROOMY}", str(place))
    with contextlib.suppress(ProbebenchError):  # the files tell
        case.run(folder, resume=True)
    left = folder_bytes(folder)
    subprocess.run(["umount", str(place)], check=True)
    return {
        "kind": kind,
        "limit": limit,
        "code": code,
        "said": said.getvalue(),
        "sent": len(client.messages),
        "unrecorded": sum(message not in recorded for message in client.messages),
        "short_writes": disk.short,
        "files": {name: data.hex() for name, data in left.items()},
    }


def main(folder: str, name: str, disk: str, most: str) -> None:
    case, place = CASES[name], Path(folder)
    for kind in ("pages", "inodes"):
        for limit in share(range(2, need(case, place, kind)), int(most)):
            result = on_a_full_disk(case, place, DISKS[disk](), kind, limit)
            print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
