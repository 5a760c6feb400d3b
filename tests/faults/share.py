"""How much of a sweep is run: a share in `make test`, the whole in `make faults`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

WHOLE = os.environ.get("PROBEBENCH_FAULTS") == "full"
Item = TypeVar("Item")


def share(items: Sequence[Item], most: int) -> list[Item]:
    """All items with PROBEBENCH_FAULTS=full, else ``most`` of them, evenly spread.

    The first and the last are always among them.
    """
    if WHOLE or len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
