"""Which modules a source tree has and what each imports, read from syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One imported module.

    imported: absolute dotted name; for ``from a import b`` it is ``a.b`` where
        that is a module of the tree, else ``a``.
    names: the names that a ``from`` import takes out of it.
    in_function: whether it runs when a function does.  A block for the type
        checker counts like any other: what is named there is known.
    """

    importer: str
    imported: str
    line: int
    in_function: bool
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call of a plain name, such as ``open``."""

    caller: str
    name: str
    line: int


@dataclass(frozen=True)
class Tree:
    """A parsed source tree."""

    modules: frozenset[str]
    imports: tuple[Import, ...]
    calls: tuple[Call, ...]


def read_tree(package: Path) -> Tree:
    """Parse every module of ``package``, a folder named like the package."""
    paths = {_module_name(package, path): path for path in sorted(package.rglob("*.py"))}
    imports: list[Import] = []
    calls: list[Call] = []
    for module, path in paths.items():
        reader = _Reader(module, is_package=path.name == "__init__.py", known=frozenset(paths))
        reader.visit(ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))
        imports += reader.imports
        calls += reader.calls
    return Tree(frozenset(paths), tuple(imports), tuple(calls))


def _module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, *, is_package: bool, known: frozenset[str]) -> None:
        self._module = module
        self._package = module if is_package else module.rpartition(".")[0]
        self._known = known
        self._depth = 0
        self.imports: list[Import] = []
        self.calls: list[Call] = []

    def visit(self, node: ast.AST) -> None:
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        self._depth += inside
        super().visit(node)
        self._depth -= inside

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = self._absolute(node)
        for submodule, names in self._sorted_out(source, [alias.name for alias in node.names]):
            self._add(submodule, node.lineno, names)

    def visit_Call(self, node: ast.Call) -> None:
        if (name := _dynamic_import(node)) is not None:
            self._add(name, node.lineno)
        elif isinstance(node.func, ast.Name):
            self.calls.append(Call(self._module, node.func.id, node.lineno))
        self.generic_visit(node)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        base = self._package.split(".")
        kept = base[: len(base) - node.level + 1]
        return ".".join([*kept, *([node.module] if node.module else [])])

    def _sorted_out(self, source: str, names: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        submodules = [name for name in names if f"{source}.{name}" in self._known]
        for name in submodules:
            yield f"{source}.{name}", ()
        if plain := tuple(name for name in names if name not in submodules):
            yield source, plain

    def _add(self, imported: str, line: int, names: tuple[str, ...] = ()) -> None:
        self.imports.append(Import(self._module, imported, line, self._depth > 0, names))


def _dynamic_import(node: ast.Call) -> str | None:
    """What ``importlib.import_module`` or ``__import__`` loads; ``?`` if computed."""
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", None))
    if name not in {"import_module", "__import__"}:
        return None
    match node.args:
        case [ast.Constant(value=str(module)), *_]:
            return module
        case _:
            return "?"
