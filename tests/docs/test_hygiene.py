"""What must not stand in the repository, and that the pins are what is installed."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

# Spelled so that this file does not contain what it looks for.
REGISTRY_HOST = re.compile(r"p[y]thonhosted|p[y]pi\.org|registry\.n[p]mjs|d[e]b\.debian")
MACHINE_PATH = re.compile(r"(?:^|[^.A-Za-z0-9_])/(?:work|farm|root)/[A-Za-z.]", re.MULTILINE)
NOT_SOURCE = {".git", ".venv", ".tools", "work", "__pycache__", "uv.lock", "build", "dist"}


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if (
            path.name in NOT_SOURCE
            or path.name.endswith(("_cache", ".hypothesis"))
            or path.name.startswith(".coverage")
        ):
            continue
        if path.is_dir():
            yield from _sources(path)
        elif path.is_file():
            yield path


def _lines_with(pattern: re.Pattern[str], folder: Path) -> list[str]:
    return [
        f"{path.relative_to(folder)}: {found[0]!r}"
        for path in _sources(folder)
        for found in pattern.finditer(path.read_bytes().decode("utf-8", errors="replace"))
    ]


def test_no_file_names_a_registry_host(repository: Path) -> None:
    assert _lines_with(REGISTRY_HOST, repository) == []


def test_no_file_names_a_path_of_a_machine(repository: Path) -> None:
    assert _lines_with(MACHINE_PATH, repository) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY_HOST, "url = https://p" + "ypi.org/simple"),
        (MACHINE_PATH, "cd /" + "root/probebench"),
        (MACHINE_PATH, "/" + "work/a"),
    ],
)
def test_a_file_that_names_one_is_found(
    pattern: re.Pattern[str], line: str, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text(line, encoding="utf-8")
    (tmp_path / "clean.md").write_text("uv run probebench --output work/a", encoding="utf-8")
    (complaint,) = _lines_with(pattern, tmp_path)
    assert complaint.startswith("page.md")


def test_the_lock_is_ignored_and_not_tracked(repository: Path) -> None:
    ignored = (repository / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "uv.lock" in ignored
    # In an unpacked archive git lists nothing, and there is nothing to track.
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "uv.lock"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.stdout == ""


def test_every_installed_package_is_pinned_to_its_version(repository: Path) -> None:
    content = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    pins = set(content["tool"]["uv"]["constraint-dependencies"])
    installed = {
        f"{re.sub(r'[-_.]+', '-', found.name).lower()}=={found.version}"
        for found in importlib.metadata.distributions()
    }
    assert {name for name in installed - pins if not name.startswith("probebench==")} == set()


def test_the_ci_entry_runs_the_test_command_of_the_readme(repository: Path) -> None:
    script = repository / ".ci" / "run"
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "exec make test"
    assert script.stat().st_mode & 0o111
