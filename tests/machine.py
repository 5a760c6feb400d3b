"""What of this machine tests may count on."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

# Present is not enough: containers often forbid namespaces.
TRIALS = {
    "bwrap": [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--disable-userns",
        "--ro-bind",
        "/",
        "/",
        "true",
    ],
}


@cache
def has(program: str) -> bool:
    """Whether a program is here, and does what it is for."""
    if shutil.which(program) is None:
        return False
    trial = TRIALS.get(program)
    return trial is None or subprocess.run(trial, capture_output=True, check=False).returncode == 0
