"""Hidden: how good a topology is on the truth vectors, and what a search missed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from probebench.environments.oscillator import truth_table
from probebench.environments.oscillator.reference import TRUTH_VECTORS
from probebench.wire.oscillator import all_keys, edges_of
from probebench.wire.oscillator_structure import is_silent

_DIGITS = 3


@cache
def truth_counts() -> Mapping[str, int]:
    """Oscillating truth vectors of each of the 2,070 classes, by key.

    Raises ValueError if the checked-in table is not the one that was computed.
    """
    keys = [key for key in all_keys() if not is_silent(edges_of(key))]
    digits = truth_table.COUNTS
    counts = [int(digits[k : k + _DIGITS], 16) for k in range(0, len(digits), _DIGITS)]
    table = "".join(f"{key} {count}\n" for key, count in zip(keys, counts, strict=True))
    found = hashlib.sha256(table.encode()).hexdigest()
    if found != truth_table.TABLE_SHA256:
        raise ValueError(
            f"the truth table has the digest {found}; run scripts/oscillator_truth_table.py"
        )
    return MappingProxyType(dict.fromkeys(all_keys(), 0) | dict(zip(keys, counts, strict=True)))


def truth_score(key: str) -> float:
    """Fraction of the truth vectors under which a class oscillates."""
    return truth_counts()[key] / TRUTH_VECTORS


@cache
def best_key() -> str:
    """The class with the largest truth score, the first in dictionary order of equals."""
    counts = truth_counts()
    return max(counts, key=lambda key: (counts[key], [-int(digit) for digit in key]))


def regret(key: str) -> float:
    """What a class lacks, as a fraction of the best truth score: 0 for the best, 1 for none."""
    return 1.0 - truth_counts()[key] / truth_counts()[best_key()]


def regret_curve(selected: Sequence[str | None]) -> list[float]:
    """The regret after each step of a search.

    selected: the key that would be chosen then, None before any is accepted.
    """
    return [1.0 if key is None else regret(key) for key in selected]
