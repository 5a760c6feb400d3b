"""Budgets (limits), charges (one cost) and ledgers (what is spent)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Charge = Mapping[str, int]

FREE: Charge = MappingProxyType({})


@dataclass(frozen=True)
class Budget:
    """Limits by resource name; a resource without a limit is only counted."""

    limits: Mapping[str, int]


@dataclass
class Ledger:
    """What has been spent, by resource name, against a budget."""

    budget: Budget
    spent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spent = dict.fromkeys(self.budget.limits, 0) | self.spent

    def remaining(self, resource: str) -> int:
        """How much of a limited resource is left."""
        return self.budget.limits[resource] - self.spent[resource]

    def affords(self, charge: Charge) -> bool:
        """Whether ``charge`` passes no limit."""
        return all(
            self.spent.get(name, 0) + amount <= self.budget.limits[name]
            for name, amount in charge.items()
            if name in self.budget.limits
        )

    def spend(self, charge: Charge) -> None:
        """Add ``charge``.  Raises ValueError if a limit would be passed.

        An environment rejects an action that it cannot afford before it
        executes it, so passing a limit here is a defect, not a rejection.
        """
        if not self.affords(charge):
            raise ValueError(
                f"the charge {dict(charge)} passes a limit: {dict(self.budget.limits)}"
            )
        for name, amount in charge.items():
            self.spent[name] = self.spent.get(name, 0) + amount
