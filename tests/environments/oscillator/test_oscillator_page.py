"""The page names tests that exist, and states the numbers that are used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probebench.environments.oscillator.evaluator import truth_score
from probebench.environments.oscillator.method import METHOD
from probebench.wire.oscillator import all_keys, edges_of
from probebench.wire.oscillator_structure import SILENT, Structure, structure


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "oscillator.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists(page: str) -> None:
    sources = Path(__file__).parent.glob("test_*.py")
    exist = {
        name
        for path in sources
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 15
    assert named - exist == set()


def test_the_table_of_structural_classes_is_current(page: str) -> None:
    found = re.findall(r"^\| `(\w+)` \| (\d+) \| (\S+)", page, re.MULTILINE)
    rows = {name: (int(count), score) for name, count, score in found}
    assert set(rows) == {one.value for one in Structure}
    for one in Structure:
        keys = [key for key in all_keys() if structure(edges_of(key)) is one]
        best = max(map(truth_score, keys))
        expected = "0" if one in SILENT or best == 0 else f"{best:.4f}"
        assert rows[one.value] == (len(keys), expected)


def test_the_criteria_are_those_of_the_method(page: str) -> None:
    verdict = page.partition("## Verdict")[2].partition("###")[0]
    for stated in (
        f"a step of {METHOD.step:g} ",
        f"for {METHOD.transient_time:g} units",
        f"{METHOD.step * METHOD.window_steps:g} that are judged",
        f"contrast (max - min)/(max + min) is at least {METHOD.min_contrast:g};",
        f"swing max - min is at least {METHOD.min_swing:g};",
        f"at least {METHOD.min_cycles} cycles",
        f"at least {METHOD.min_amplitude_ratio:g} of that of the first",
        f"periods is at most {METHOD.max_period_cv:g};",
        f"last {METHOD.step * METHOD.block_steps:g} units of time",
    ):
        assert stated in " ".join(verdict.split())
    assert "1e-4 of its level" in " ".join(verdict.split())
    assert METHOD.rest_range == 1e-4
    assert f"start at {METHOD.initial_level:g}." in " ".join(page.split())
