"""Exact truth: the checked-in table, the references, and what can not oscillate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from probebench.environments.oscillator import evaluator, truth_table
from probebench.environments.oscillator.evaluator import (
    best_key,
    regret,
    regret_curve,
    truth_counts,
    truth_score,
)
from probebench.environments.oscillator.kinetics import VectorSet, vectors_sha256
from probebench.environments.oscillator.reference import REFERENCES, TRUTH_SEED, Reference
from probebench.environments.oscillator.scoring import judge_compiled, oscillating
from probebench.wire.oscillator import Edges, all_keys, edges_of, key_of
from probebench.wire.oscillator_structure import Structure, is_silent, structure
from tests.environments.oscillator.circuits import (
    CASCADE,
    INCOHERENT_FEED_FORWARD,
    POSITIVE_RING,
    SEED,
    TOGGLE,
    TRUTH,
)

LIVE = [key for key in all_keys() if not is_silent(edges_of(key))]


def test_the_table_is_of_these_vectors() -> None:
    assert vectors_sha256(TRUTH) == truth_table.VECTORS_SHA256


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.key)
def test_references_score_as_in_the_prototype(reference: Reference) -> None:
    count = oscillating(reference.key, TRUTH_SEED, VectorSet.TRUTH, 4096)
    assert count == truth_counts()[reference.key]
    assert count / 4096 == pytest.approx(reference.prototype_score, abs=0.02)


@pytest.mark.parametrize("key", [*LIVE[::100], best_key()])
def test_rows_of_the_table_are_computed_anew(key: str) -> None:
    assert oscillating(key, TRUTH_SEED, VectorSet.TRUTH, 4096) == truth_counts()[key]


def test_every_class_has_a_row() -> None:
    assert list(truth_counts()) == list(all_keys())
    assert max(truth_counts().values()) < 4096


@pytest.mark.parametrize(
    "edges",
    [TOGGLE, POSITIVE_RING, CASCADE, INCOHERENT_FEED_FORWARD],
    ids=["toggle", "positive ring", "cascade", "incoherent feed-forward"],
)
def test_circuits_without_a_negative_cycle_score_exactly_0(edges: Edges) -> None:
    assert truth_score(key_of(edges)) == 0
    # Simulated as well, not by their structure alone.
    assert judge_compiled(edges, TRUTH).count == 0


def test_no_structural_zero_oscillates_where_it_is_simulated() -> None:
    silent = [key for key in all_keys() if is_silent(edges_of(key))]
    assert len(silent) == 769
    for index, key in enumerate(silent):
        part = TRUTH[(64 * index) % 4096 :][:64]
        assert judge_compiled(edges_of(key), part).count == 0
        assert truth_score(key) == 0


def test_negative_self_loops_with_positive_cycles_never_oscillated() -> None:
    found = {
        truth_score(key)
        for key in LIVE
        if structure(edges_of(key)) is Structure.NEGATIVE_SELF_WITH_POSITIVE
    }
    assert found == {0.0}


def test_the_best_class_is_none_of_the_references() -> None:
    assert best_key() not in {reference.key for reference in REFERENCES}
    assert truth_score(best_key()) == max(map(truth_score, all_keys())) > 0.19


def test_regret_is_relative_to_the_best_class() -> None:
    assert regret(best_key()) == 0.0
    assert regret(key_of(CASCADE)) == 1.0
    half = min(LIVE, key=lambda key: abs(truth_score(key) - truth_score(best_key()) / 2))
    assert regret(half) == pytest.approx(0.5, abs=0.02)
    assert regret_curve([None, key_of(CASCADE), half]) == [1.0, 1.0, regret(half)]


def test_a_table_with_another_digit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = truth_table.COUNTS
    other = "f" if counts[-1] != "f" else "e"
    evaluator.truth_counts.cache_clear()
    monkeypatch.setattr(truth_table, "COUNTS", counts[:-1] + other)
    with pytest.raises(ValueError, match="truth table has the digest"):
        truth_counts()
    monkeypatch.undo()
    evaluator.truth_counts.cache_clear()
    assert len(truth_counts()) == 2_070


def test_256_vectors_rank_classes_almost_as_truth_does() -> None:
    keys = LIVE[::8]
    train = [oscillating(key, SEED, VectorSet.TRAIN, 256) for key in keys]
    assert spearmanr(train, [truth_score(key) for key in keys])[0] >= 0.94
    assert np.ptp(train) > 20
