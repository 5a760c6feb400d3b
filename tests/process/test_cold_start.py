"""A command waits for the modules that it needs, and for no others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from probebench.cli_options import lazily

# An application that ends as the real one does, and then tells what it loaded.
TELLING = """
import atexit, sys
atexit.register(lambda: print("LOADED", *sorted(sys.modules), file=sys.stderr))
from probebench.cli import main
sys.argv = ["probebench", *sys.argv[1:]]
main()
"""
SLOW = ("numpy", "scipy", "numba", "PIL", "probebench.app.verify")


def loaded_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", TELLING, *arguments], capture_output=True, text=True, check=False
    )
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize("arguments", [("--help",), ("session", "--help"), ("show", "--hlep")])
def test_help_and_mistakes_load_nothing_slow(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "typer" in loaded
    assert not loaded.intersection(SLOW)


def test_a_command_that_verifies_loads_what_verifies() -> None:
    assert "probebench.app.verify" in loaded_by("verify", "no such folder")


def test_a_module_that_is_not_there_is_named_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"no module named 'probebench.nothing'"):
        lazily("probebench.nothing")
