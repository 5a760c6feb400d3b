"""What is done about the standard streams before anything else is opened."""

from __future__ import annotations

import os


def hold_standard_error() -> None:
    """Open the null device where standard error is closed.

    Otherwise the next file to be opened would take its number, and receive
    what is printed there.
    """
    if not is_open(2):
        nothing = os.open(os.devnull, os.O_RDWR)
        if nothing != 2:
            os.dup2(nothing, 2)
            os.close(nothing)


def is_open(descriptor: int) -> bool:
    """Whether a file descriptor is open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
