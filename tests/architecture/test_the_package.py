"""The package obeys the table, and the document says what the table says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import Tree, read_tree
from tests.architecture.rules import RULES, Rule
from tests.architecture.table import Table, covers, read_table


@pytest.fixture(scope="module")
def table(repository: Path) -> Table:
    return read_table(repository / "docs" / "architecture.toml")


@pytest.fixture(scope="module")
def tree(repository: Path) -> Tree:
    return read_tree(repository / "probebench")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_obeys(rule: Rule, table: Table, tree: Tree) -> None:
    assert list(rule(table, tree)) == []


def test_the_tree_was_read(tree: Tree) -> None:
    imported = {edge.imported for edge in tree.imports if edge.importer == "probebench.kernel.turn"}
    assert "probebench.kernel.canonical" in imported


def test_every_named_module_exists(table: Table, tree: Tree) -> None:
    named = {component.name for component in table.components}
    for side in table.hidden:
        named |= {side.wired_in, *(f"{side.environment}.{name}" for name in side.modules)}
    assert named - tree.modules == set()


def test_components_are_listed_from_the_highest_to_the_lowest(table: Table) -> None:
    names = [component.name for component in table.components]
    for position, component in enumerate(table.components):
        lower = {"probebench", *names[position + 1 :]}
        assert set(component.may_import) <= lower


def test_no_component_lies_within_another(table: Table) -> None:
    names = [component.name for component in table.components]
    assert [(a, b) for a in names for b in names if a != b and covers(a, b)] == []


def test_the_document_is_current(repository: Path) -> None:
    script = repository / "scripts" / "generate_architecture_doc.py"
    ran = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
