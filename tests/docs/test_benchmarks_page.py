"""The page of the benchmarks says what was measured, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks.report import BENCHMARKS, page

# So that a benchmark cannot be dropped because it went badly.
FIGURES = (
    "one image, against hcipy",
    "one image, against prysm",
    "one image, against solvephase",
    "one image, against poppy",
    "nine-start fit, against solvephase retrieve",
    'one start, against solvephase solve(method="lm")',
    "exposure turn beyond its two publishes",
    "recorded driver time over verify (ratio)",
    "cold start to --help",
    "cold start to the first request",
)


@pytest.fixture(scope="module")
def documents(repository: Path) -> dict[str, Any]:
    folder = repository / "docs" / "benchmarks"
    return {
        each.name: json.loads((folder / f"{each.name}.json").read_text()) for each in BENCHMARKS
    }


def test_the_page_is_rendered_from_the_documents_that_were_measured(repository: Path) -> None:
    assert (repository / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page()


def test_no_document_is_kept_that_the_page_does_not_show(repository: Path) -> None:
    kept = {path.stem for path in (repository / "docs" / "benchmarks").iterdir()}
    assert kept == {each.name for each in BENCHMARKS}


def test_every_row_of_the_table_of_figures_is_measured_and_judged(documents: Any) -> None:
    rows = [row for document in documents.values() for row in document.get("targets", [])]
    assert {row["what"] for row in rows} >= set(FIGURES)
    for row in rows:
        assert row["verdict"] in {"met", "within its spread", "missed"}


def test_images_agree_with_every_peer_to_a_trillionth_of_the_peak(documents: Any) -> None:
    for figures in documents["optical"]["sizes"].values():
        agreement = figures["psf"]["agreement_of_peak"]
        assert set(agreement) == {"hcipy", "prysm", "solvephase", "poppy"}
        assert max(agreement.values()) < 1e-12


def test_the_benchmarks_took_less_than_ten_minutes(documents: Any) -> None:
    assert sum(document["run_s"] for document in documents.values()) < 600


def test_the_noise_of_the_machine_is_told(repository: Path) -> None:
    told = (repository / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert told.count("the quartiles of a fixed load lay") == 3
