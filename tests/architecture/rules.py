"""The rules: each takes the table and a source tree and yields sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter

from tests.architecture.imports import Import, Tree
from tests.architecture.table import Component, HiddenSide, Table, covers

Rule = Callable[[Table, Tree], Iterator[str]]

ROOT = "probebench"


def every_module_belongs_to_a_component(table: Table, tree: Tree) -> Iterator[str]:
    """A module that the table does not know could import anything."""
    for module in sorted(tree.modules - {ROOT}):
        if _component_of(table, module) is None:
            yield f"{module} belongs to no component; add it to docs/architecture.toml"


def components_import_only_what_is_below_them(table: Table, tree: Tree) -> Iterator[str]:
    """The layers, and that siblings do not know each other."""
    for edge in _inner(tree):
        importer = _component_of(table, edge.importer)
        if importer is None or covers(importer.name, edge.imported):
            continue
        imported = _component_of(table, edge.imported)
        # The bare package is no component: it must be named to be imported.
        name = edge.imported if imported is None else imported.name
        if name not in importer.may_import:
            yield f"{_where(edge)}; {importer.name} may not import it"


def split_parts_never_import_each_other(table: Table, tree: Tree) -> Iterator[str]:
    """One environment does not know another."""
    for edge in _inner(tree):
        for component in table.components:
            parts = (_part(component, edge.importer), _part(component, edge.imported))
            if component.split and None not in parts and parts[0] != parts[1]:
                yield f"{_where(edge)}; parts of {component.name} may not import each other"


def the_hidden_side_is_known_to_its_wiring_only(table: Table, tree: Tree) -> Iterator[str]:
    """What the public side cannot name, it cannot send."""
    for edge in _inner(tree):
        for side in table.hidden:
            if not _is_hidden(side, edge.imported) or edge.importer == side.wired_in:
                continue
            if not _is_hidden(side, edge.importer):
                yield f"{_where(edge)}, which is hidden; only {side.wired_in} may import it"


def pure_components_touch_nothing_outside(table: Table, tree: Tree) -> Iterator[str]:
    """Without a clock, a file or a random source, replay can only agree."""
    for edge in tree.imports:
        outside = edge.imported.partition(".")[0]
        if _is_pure(table, edge.importer) and outside not in {ROOT, *table.pure_modules}:
            yield f"{_where(edge)}, which is not listed as pure"
    for call in tree.calls:
        if _is_pure(table, call.caller) and call.name in table.forbidden_calls:
            yield f"{call.caller}:{call.line} calls {call.name}() in a pure component"


def functions_import_only_what_is_listed(table: Table, tree: Tree) -> Iterator[str]:
    """Each has a reason, and a reason without an import is out of date."""
    unused = set(table.local_imports)
    for edge in tree.imports:
        if not edge.in_function:
            continue
        reasons = [
            entry
            for entry in table.local_imports
            if covers(entry.importer, edge.importer) and covers(entry.imported, edge.imported)
        ]
        unused.difference_update(reasons)
        if not reasons:
            yield f"{_where(edge)} inside a function; list it with a reason or move it up"
    for entry in sorted(unused, key=repr):
        yield f"{entry.importer} no longer imports {entry.imported} inside a function; remove it"


def modules_are_named_where_they_are_imported(_table: Table, tree: Tree) -> Iterator[str]:
    """A computed name would pass every other rule."""
    for edge in tree.imports:
        if edge.imported == "?":
            yield f"{edge.importer}:{edge.line} imports a module whose name is computed"


def private_names_stay_in_their_module(_table: Table, tree: Tree) -> Iterator[str]:
    """A component is used by its public calls."""
    for edge in _inner(tree):
        for name in (edge.imported.rpartition(".")[2], *edge.names):
            if name.startswith("_") and not name.startswith("__"):
                yield f"{_where(edge)}; {name} is private"


def imports_form_no_cycle(_table: Table, tree: Tree) -> Iterator[str]:
    """Imports inside functions count: they only hide a cycle."""
    graph: dict[str, set[str]] = {}
    for edge in _inner(tree):
        graph.setdefault(edge.importer, set()).add(edge.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"import cycle: {' <- '.join(error.args[1])}"


RULES: tuple[Rule, ...] = (
    every_module_belongs_to_a_component,
    components_import_only_what_is_below_them,
    split_parts_never_import_each_other,
    the_hidden_side_is_known_to_its_wiring_only,
    pure_components_touch_nothing_outside,
    functions_import_only_what_is_listed,
    modules_are_named_where_they_are_imported,
    private_names_stay_in_their_module,
    imports_form_no_cycle,
)


def _inner(tree: Tree) -> Iterator[Import]:
    return (edge for edge in tree.imports if covers(ROOT, edge.imported))


def _component_of(table: Table, module: str) -> Component | None:
    return next((item for item in table.components if covers(item.name, module)), None)


def _part(component: Component, module: str) -> str | None:
    if module == component.name or not covers(component.name, module):
        return None
    return module.removeprefix(f"{component.name}.").partition(".")[0]


def _is_hidden(side: HiddenSide, module: str) -> bool:
    return any(covers(f"{side.environment}.{name}", module) for name in side.modules)


def _is_pure(table: Table, module: str) -> bool:
    component = _component_of(table, module)
    return component is not None and component.pure


def _where(edge: Import) -> str:
    return f"{edge.importer}:{edge.line} imports {edge.imported}"
