"""How much of a sweep is run: a share in `make test`, the whole in `make faults`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, TypeVar

# Where scripts/faults.py collects what was counted; a line of JSON each.
COUNTS = os.environ.get("PROBEBENCH_COUNTS")
WHOLE = os.environ.get("PROBEBENCH_FAULTS") == "full"
Item = TypeVar("Item")


def share(items: Sequence[Item], most: int) -> list[Item]:
    """All items with PROBEBENCH_FAULTS=full, else ``most`` of them, evenly spread.

    The first and the last are always among them.
    """
    if WHOLE or len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


class Count(Protocol):
    """Say how often something was done."""

    def __call__(
        self, what: str, number: int, subject: str, words: str = "", *, quietly: bool = False
    ) -> None:
        """what: in the plural.  subject: to which sessions.  words: how it went.

        quietly: print it with the captured output alone.
        """
        ...
