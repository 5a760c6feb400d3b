"""The import rules as read from docs/architecture.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Component:
    """A module or package of the table, with everything below it."""

    name: str
    may_import: tuple[str, ...]
    purpose: str
    pure: bool = False
    split: bool = False


@dataclass(frozen=True)
class HiddenSide:
    """The modules of an environment that know its truth."""

    environment: str
    modules: tuple[str, ...]
    wired_in: str


@dataclass(frozen=True)
class LocalImport:
    """An import inside a function that is allowed, and why."""

    importer: str
    imported: str
    reason: str


@dataclass(frozen=True)
class Table:
    """All rules."""

    components: tuple[Component, ...]
    pure_modules: frozenset[str]
    forbidden_calls: frozenset[str]
    hidden: tuple[HiddenSide, ...]
    local_imports: tuple[LocalImport, ...]


def read_table(path: Path) -> Table:
    """Read the rules.  Raises TypeError for an unknown or missing key."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    table = Table(
        components=tuple(Component(**_frozen(entry)) for entry in content.pop("component")),
        pure_modules=frozenset(content["pure"].pop("modules")),
        forbidden_calls=frozenset(content["pure"].pop("forbidden_calls")),
        hidden=tuple(HiddenSide(**_frozen(entry)) for entry in content.pop("hidden")),
        local_imports=tuple(LocalImport(**entry) for entry in content.pop("local_import", [])),
    )
    if unknown := [*content.pop("pure"), *content]:
        raise TypeError(f"{path.name} has unknown keys: {', '.join(unknown)}")
    return table


def covers(prefix: str, module: str) -> bool:
    """Whether ``module`` is ``prefix`` or lies below it."""
    return module == prefix or module.startswith(f"{prefix}.")


def _frozen(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(item) if isinstance(item, list) else item for key, item in entry.items()}
