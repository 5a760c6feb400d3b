"""Archive, budgets and the arms without an agent."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from probebench.environments.oscillator.arms import (
    ARMS,
    ArmStream,
    Draws,
    Elite8Arm,
    EvolutionaryArm,
    RandomArm,
)
from probebench.environments.oscillator.evaluator import regret_curve, truth_counts
from probebench.environments.oscillator.reference import REFERENCES
from probebench.environments.oscillator.search import (
    Search,
    SearchLimits,
    archive_rows,
    completed_search,
)
from probebench.kernel.canonical import decode, encode
from probebench.wire.oscillator import Edges, all_keys, canonical, edges_of, key_of, relabellings
from tests.environments.oscillator.circuits import SEED

LIMITS = SearchLimits()


def fake_score(spec: Any) -> Any:
    """Truth, thinned to the holdout's size, in place of a simulation."""
    count = truth_counts()[spec["key"]] * spec["holdout"] // 4096
    return {
        "key": spec["key"],
        "train_oscillating": count // 4,
        "holdout_oscillating": count,
        "best": None,
    }


@cache
def ended(arm: str, seed: int) -> Search:
    return completed_search(ARMS[arm](f"{seed:032x}"), LIMITS, SEED, fake_score)


def grown(*keys: str) -> Search:
    search = Search(LIMITS)
    for key in keys:
        search.accept(fake_score(search.score_spec(edges_of(key), SEED)))
    return search


# -- the archive --------------------------------------------------------------


def test_a_relabelled_proposal_is_a_duplicate_and_costs_an_attempt_alone() -> None:
    search = grown("002200020")
    for edges in relabellings(edges_of("002200020")):
        assert search.score_spec(edges, SEED) is None
        search.repeat(edges)
    assert search.duplicates == ["002200020"] * 6
    assert search.spent() == {
        "accepted": 1,
        "attempts": 7,
        "inner_evaluations": 256,
        "holdout_evaluations": 1024,
    }
    assert search.unscored_charge() == {"attempts": 1}


def test_the_charges_of_all_attempts_add_up_to_what_is_spent() -> None:
    search = ended("elite8", 1)
    total: Counter[str] = Counter()
    for _ in search.candidates:
        total.update(search.score_charge())
    for _ in search.duplicates:
        total.update(search.unscored_charge())
    assert search.duplicates
    assert total == search.spent()


def test_a_structural_zero_is_charged_in_full() -> None:
    assert grown("001002020").spent() == grown("001200210").spent()


def test_a_score_is_asked_for_under_the_canonical_key() -> None:
    labelled = (0, 1, 0, 0, 0, 2, 1, 0, 0)
    assert canonical(labelled) != labelled
    assert Search(LIMITS).score_spec(labelled, SEED) == {
        "key": key_of(labelled),
        "kinetics_seed": SEED,
        "inner_budget": 256,
        "holdout": 1024,
    }


def test_what_the_archive_does_not_fit_is_refused() -> None:
    search = grown("002200020")
    with pytest.raises(ValueError, match="has 002200020 already"):
        search.accept({"key": "002200020"})
    with pytest.raises(ValueError, match="lacks 001100020"):
        search.repeat(edges_of("001100020"))


def test_a_search_ends_at_its_candidates_or_at_eight_times_as_many_attempts() -> None:
    search = Search(SearchLimits(accepted=2))
    assert search.limits.attempts == 16
    for _ in range(15):
        search.reject("100000000")
    assert search.document()["rejected"] == ["100000000"] * 15
    search.reject()
    assert search.ended == "attempts"
    assert search.rejected == ["100000000"] * 15 + [""]
    with pytest.raises(ValueError, match="search is over"):
        search.reject()
    full = completed_search(RandomArm(SEED), SearchLimits(accepted=2), SEED, fake_score)
    assert (full.ended, full.attempts) == ("accepted", 2)


def test_the_state_survives_json() -> None:
    search = ended("elite8", 2)
    search = Search(LIMITS, search.candidates, search.duplicates, ["", "100000000"])
    again = Search.from_document(decode(encode(search.document())))
    assert again == search
    with pytest.raises(TypeError):
        Search.from_document(search.document() | {"extra": 1})


def test_selection_is_by_holdout_and_the_earlier_of_equals() -> None:
    search = grown("001002020", "001001020", "002200020", "000001100")
    search.repeat(edges_of("002200020"))
    assert search.selected(0) is None
    assert [search.selected(count) for count in (1, 2, 3, 4)] == [
        "001002020",
        "001001020",
        "002200020",
        "002200020",
    ]
    assert search.selected_after_each() == [search.selected(count) for count in (1, 2, 3, 4, 4)]
    assert [one.key for one in search.ranked()][2:] == ["001002020", "000001100"]


def test_rows_of_the_archive_carry_classes_only_with_hints() -> None:
    search = grown("002200020", "000001100")
    rows = archive_rows(search, hints=True)
    assert rows[0] == {
        "key": "002200020",
        "holdout_score": fake_score({"key": "002200020", "holdout": 1024})["holdout_oscillating"]
        / 1024,
        "dimension": 15,
        "motif_class": "negative_3_cycle",
    }
    assert [row["motif_class"] for row in rows] == ["negative_3_cycle", "acyclic"]
    for row in archive_rows(search, hints=False):
        assert set(row) == {"key", "holdout_score", "dimension"}


# -- the arms -----------------------------------------------------------------


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_ends_with_64_different_classes_of_its_own_finding(arm: str) -> None:
    search = ended(arm, 0)
    assert search.ended == "accepted"
    assert len(search.evaluated) == 64
    assert ended(arm, 1).evaluated != search.evaluated


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_goes_on_after_a_resume_as_it_would_have(arm: str) -> None:
    whole = ended(arm, 3)
    search = Search(LIMITS)
    while search.ended is None:
        # All that survives each attempt is JSON, and a fresh arm.
        search = Search.from_document(decode(encode(search.document())))
        edges = ARMS[arm](f"{3:032x}").propose(search)
        spec = search.score_spec(edges, SEED)
        if spec is None:
            search.repeat(edges)
        else:
            search.accept(fake_score(spec))
    assert search == whole


@pytest.mark.parametrize("arm", ARMS)
def test_proposing_twice_changes_nothing(arm: str) -> None:
    search = Search(LIMITS, ended(arm, 0).candidates[:40])
    before = search.document()
    first = ARMS[arm](SEED).propose(search)
    assert ARMS[arm](SEED).propose(search) == first
    assert search.document() == before


def test_the_random_arm_never_repeats_and_is_uniform_over_classes() -> None:
    first = Counter[int]()
    for seed in range(100):
        search = ended("random", seed)
        assert search.attempts == 64
        first.update(all_keys().index(one.key) * 10 // 2070 for one in search.candidates)
    assert chisquare([first[k] for k in range(10)]).pvalue > 1e-3


def test_no_arm_is_given_a_reference() -> None:
    # The references are 8 of 2,070: of 64 random classes few are among them.
    keys = {reference.key for reference in REFERENCES}
    found = [len(ended("random", seed).evaluated & keys) for seed in range(100)]
    assert np.mean(found) == pytest.approx(64 * len(keys) / 2070, abs=0.1)
    for arm in ARMS:
        started = [ended(arm, seed).candidates[0].key in keys for seed in range(40)]
        assert sum(started) <= 3


def test_evolution_starts_with_16_random_classes_and_changes_one_or_two_edges() -> None:
    search = ended("evolutionary", 5)
    assert not any(one.attempt != place for place, one in enumerate(search.candidates[:16]))
    early = Search(LIMITS, search.candidates[:16])
    one_edge = 0
    for seed in range(400):
        edges = EvolutionaryArm(f"{seed:032x}").propose(early)
        nearest = min(_distance(edges, one.key) for one in early.candidates)
        assert nearest <= 2
        one_edge += nearest == 1
    # Two changes sometimes meet another relabelling or parent at one.
    assert 0.65 < one_edge / 400 < 0.85


def test_tournaments_prefer_good_parents() -> None:
    early = Search(LIMITS, ended("random", 0).candidates)
    half = {one.key for one in early.ranked()[:32]}
    better = 0
    for seed in range(200):
        edges = EvolutionaryArm(f"{seed:032x}").propose(early)
        near = [one.key for one in early.candidates if _distance(edges, one.key) == 1]
        better += bool(near) and all(key in half for key in near)
    # A winner of four is in the better half in 15 of 16 tournaments.
    assert better > 80


def test_elite8_mutates_the_best_eight_in_turn_with_a_quarter_immigrants() -> None:
    base = ended("random", 1).candidates
    near = total = 0
    for length in range(16, 56):
        search = Search(LIMITS, base[:length])
        for seed in range(10):
            edges = Elite8Arm(f"{seed:032x}").propose(search)
            parent = search.ranked()[search.attempts % 8]
            near += _distance(edges, parent.key) <= 2
            total += 1
    # Some immigrants come to lie near by chance.
    assert 0.68 < near / total < 0.9


def test_searching_beats_random_proposals() -> None:
    regrets = {
        arm: np.mean(regret_curve([ended(arm, seed).selected(64) for seed in range(60)]))
        for arm in ARMS
    }
    assert regrets["elite8"] < regrets["random"] - 0.05
    assert regrets["evolutionary"] < regrets["random"] - 0.05


def test_regret_falls_as_candidates_are_accepted() -> None:
    search = ended("elite8", 4)
    # By truth itself, as fake scores are: by holdout it may rise again.
    curve = regret_curve(search.selected_after_each())
    assert len(curve) == search.attempts
    assert all(later <= earlier + 1e-2 for earlier, later in pairwise(curve))
    assert curve[-1] < curve[0]


# -- the draws ----------------------------------------------------------------


def test_draws_are_uniform_and_pinned() -> None:
    draws = Draws(SEED, ArmStream.RANDOM, 0)
    found = Counter(draws.below(7) for _ in range(7000))
    assert chisquare([found[k] for k in range(7)]).pvalue > 1e-3
    again = Draws(SEED, ArmStream.ELITE8, 3)
    text = ",".join(str(again.below(1000)) for _ in range(50))
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "c226f335c8896cd1a2e562cfa4498003125547b2d2b75f4d5f847b31dc4e570a"
    )


def test_attempts_and_arms_draw_apart() -> None:
    streams = [
        tuple(Draws(seed, stream, attempt).below(2**60) for _ in range(2))
        for seed in (SEED, SEED[::-1])
        for stream in ArmStream
        for attempt in range(5)
    ]
    assert len(set(streams)) == 30


def _distance(edges: Edges, key: str) -> int:
    """Slots that differ, over the relabellings of either."""
    other = edges_of(key)
    return min(sum(a != b for a, b in zip(one, other, strict=True)) for one in relabellings(edges))
