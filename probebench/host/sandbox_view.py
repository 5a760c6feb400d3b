"""Which of this machine's files a sandboxed client sees."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from probebench.host.sandbox import SCRATCH, View, is_within
from probebench.kernel.errors import OperatorError

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/alternatives",
)
# What of the package a client may import.
PUBLIC = ("__init__.py", "py.typed", "kernel", "wire", "clients")
SITE = ("site-packages", "dist-packages")
# Beside a package that is imported from a checkout: its configurations, tests
# and scripts, what its pages say of references, and the history that holds all.
CHECKOUT = ("configs", "tests", "scripts", "docs", ".git")


@dataclass(frozen=True)
class Hidden:
    """What no client may see.

    session: the session folder; config: the configuration file, or None where
    the session folder has it; package: the folder of the package's source.
    """

    session: Path
    config: Path | None
    package: Path

    def paths(self) -> list[tuple[str, str]]:
        """(what it is, where) of everything."""
        found = [("the session folder", self.session), ("the package's source", self.package)]
        if self.config is not None:
            found.append(("the configuration", self.config))
        if self.package.parent.name not in SITE:
            found += [("the checkout", self.package.parent / name) for name in CHECKOUT]
        # Under the name that was given and under the one that it stands for.
        names = {(what, name) for what, path in found for name in _names(path)}
        return sorted(names)


def view_of(argv: Sequence[str], binds: Sequence[Path], hidden: Hidden) -> View:
    """What a client of this command is shown.

    argv: its words; the existing files among them are shown.
    binds: files and folders that the operator shows besides.
    Raises OperatorError for a bind that is not there, for one that holds or
    lies in something hidden, and where the session folder or configuration
    lies in a folder of the system or the interpreter.
    """
    links = tuple(_links(SYSTEM))
    linked = {path for path, _ in links}
    system = [path for path in (*SYSTEM, *SYSTEM_FILES) if path not in linked]
    base = _outermost(path for path in (*system, *_interpreter()) if Path(path).exists())
    given = tuple(_given(binds))
    named = [word for word in argv if _is_file(word) and not _is_among(word, base)]
    for path in (*given, *named):
        _require_apart(path, hidden)
    _require_elsewhere(base, hidden)
    shown = [*base, *given, *named, *_public(hidden.package)]
    return View(
        folders=tuple(path for path in shown if Path(path).is_dir()),
        files=tuple(path for path in shown if not Path(path).is_dir()),
        links=links,
        emptied=(str(hidden.package),),
        given=given,
    )


def _links(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        if Path(path).is_symlink():
            yield path, str(Path(path).readlink())


def _interpreter() -> list[str]:
    """Programs, libraries and packages of the Python that runs the driver."""
    names = ("bin", "lib", "lib64", "pyvenv.cfg")
    prefixes = {sys.base_prefix, str(Path(sys.base_prefix).resolve())}
    found = [f"{prefix}/{name}" for prefix in sorted(prefixes) for name in names]
    found += [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib", "scripts")]
    found.append(f"{sys.prefix}/pyvenv.cfg")
    return [path for path in found if not Path(path).is_symlink()]


def _outermost(paths: Iterable[str]) -> list[str]:
    """Leave out what lies below another one."""
    kept: list[str] = []
    for path in sorted(paths):  # a folder stands before what is below it
        if not _is_among(path, kept):
            kept.append(path)
    return kept


def _public(package: Path) -> list[str]:
    return [str(package / name) for name in PUBLIC if (package / name).exists()]


def _given(binds: Sequence[Path]) -> Iterator[str]:
    for bind in binds:
        path = bind.absolute()
        if not path.exists():
            raise OperatorError(
                f"the path {str(bind)!r} (--sandbox-bind) does not exist; give a file or a folder"
            )
        if any(is_within(scratch, str(path)) for scratch in SCRATCH):
            raise OperatorError(
                f"the path {str(bind)!r} (--sandbox-bind) would cover what the client may write "
                f"({', '.join(SCRATCH)}); give something below it"
            )
        yield os.path.normpath(path)


def _require_apart(path: str, hidden: Hidden) -> None:
    for what, secret in hidden.paths():
        for name in _names(Path(path)):
            if is_within(secret, name) or is_within(name, secret):
                raise OperatorError(
                    f"the client would be shown {path!r}, which holds {what} or lies in it; "
                    "move the client's own files elsewhere"
                )


def _require_elsewhere(base: Sequence[str], hidden: Hidden) -> None:
    for what, secret in hidden.paths():
        # An installed package lies among the others; it is emptied there.
        within = [folder for folder in base if is_within(secret, folder)]
        if within and not (what == "the package's source" and hidden.package.parent.name in SITE):
            raise OperatorError(
                f"{what} lies in {within[0]!r}, which every sandboxed client sees; put it elsewhere"
            )


def _is_among(path: str, folders: Sequence[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)


def _is_file(word: str) -> bool:
    try:
        return word.startswith("/") and Path(word).is_file()
    except OSError:  # too long for a name: a program text
        return False


def _names(path: Path) -> list[str]:
    return sorted({os.path.normpath(path.absolute()), str(path.resolve())})
