"""The page of the physics names tests that exist, and states the numbers that are used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probebench.environments.optical.camera import EXPECTATION_QUANTUM_E
from probebench.environments.optical.modes import MODE_NAMES, NOLL_INDICES
from probebench.environments.optical.starts import GRADIENT_TOLERANCE, JOINING_DISTANCE_NM

PHYSICS = (
    "modes",
    "propagation",
    "orientation",
    "camera",
    "display",
    "likelihood",
    "estimator",
    "estimator_result",
    "evaluator",
    "fixture",
    "fit_check",
    "assisted_control",
)


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "physics.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tests() -> set[str]:
    folder = Path(__file__).parent
    sources = [(folder / f"test_{name}.py").read_text(encoding="utf-8") for name in PHYSICS]
    return {
        name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)
    }


def test_every_test_that_the_page_names_exists(page: str, tests: set[str]) -> None:
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 60
    assert named - tests == set()


def test_the_modes_of_the_page_are_those_of_the_code(page: str) -> None:
    rows = re.findall(r"^\| (\d) \| (\d) \| ([a-z ]+) \|", page, re.MULTILINE)
    assert rows == [
        (str(index), str(noll), name)
        for index, (noll, name) in enumerate(zip(NOLL_INDICES, MODE_NAMES, strict=True))
    ]


def test_the_numbers_of_the_page_are_those_of_the_code(page: str) -> None:
    words = " ".join(page.split())
    assert "multiples of 2^-20 e-" in words
    assert EXPECTATION_QUANTUM_E == 2**-20
    assert "1e-4 of the root of the largest eigenvalue" in words
    assert GRADIENT_TOLERANCE == 1e-4
    assert "within 25 nm of a minimum" in words
    assert JOINING_DISTANCE_NM == 25
