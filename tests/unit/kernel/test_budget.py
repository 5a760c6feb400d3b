"""Ledgers never pass a limit, whatever the order of charges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.kernel.budget import Budget, Ledger

CHARGES = st.lists(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), max_size=3), max_size=20
)


@given(CHARGES)
def test_no_limit_is_ever_passed(charges: list[dict[str, int]]) -> None:
    ledger = Ledger(Budget({"a": 7, "b": 11}))
    for charge in charges:
        if ledger.affords(charge):
            ledger.spend(charge)
        else:
            before = dict(ledger.spent)
            with pytest.raises(ValueError, match="passes a limit"):
                ledger.spend(charge)
            assert ledger.spent == before
        assert ledger.remaining("a") >= 0
        assert ledger.remaining("b") >= 0


def test_a_resource_without_a_limit_is_only_counted() -> None:
    ledger = Ledger(Budget({}))
    ledger.spend({"attempts": 10**9})
    assert ledger.spent == {"attempts": 10**9}
