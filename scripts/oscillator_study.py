"""Measure what the oscillator's verdicts, scores and arms are worth.

    uv run python scripts/oscillator_study.py [--part lsoda] [--pairs 10000] [--json]

Verdicts against LSODA at 1e-10 on pairs of a class and a kinetic vector; the
early exit against whole integrations; verdicts on single negative rings
against linear stability; rank correlation of the train set's scores with
truth; regret of each arm.  Everything is drawn from fixed seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import spearmanr

from probebench.environments.oscillator.arms import ARMS
from probebench.environments.oscillator.dynamics import time_courses
from probebench.environments.oscillator.evaluator import regret_curve, truth_score
from probebench.environments.oscillator.kinetics import VectorSet, kinetic_vectors
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.oracle import (
    complex_growth_rate,
    growth_rate,
    judge_lsoda,
    nearest_equilibrium,
    ring_equilibrium,
)
from probebench.environments.oscillator.reference import TRUTH_SEED
from probebench.environments.oscillator.scoring import judge_compiled, oscillating
from probebench.environments.oscillator.search import SearchLimits, completed_search
from probebench.wire.oscillator import Edges, all_keys, edges_of
from probebench.wire.oscillator_structure import is_silent

KINETICS_SEED = "00112233445566778899aabbccddeeff"
# Growth per unit of time within which a circuit counts as at its Hopf point.
HOPF_MARGIN = 0.0025
TO_THE_END = METHOD._replace(early_exit=False)
PARTS = ("lsoda", "early-exit", "rings", "retest", "arms")
RINGS = ("002200020", "001100020")
TRUTH = kinetic_vectors(TRUTH_SEED, VectorSet.TRUTH, 4096)


def live_classes() -> list[str]:
    """Classes that their structure does not silence."""
    return [key for key in all_keys() if not is_silent(edges_of(key))]


def lsoda_disagreements(pairs: int) -> dict[str, Any]:
    """Compare verdicts with LSODA's; list the classes and growth rates where they differ.

    Half of the classes are drawn alike, half in proportion to their truth scores.
    """
    rng = np.random.Generator(np.random.Philox(key=1))
    live = live_classes()
    scores = np.array([truth_score(key) for key in live])
    weighted = rng.choice(live, pairs // 2, p=scores / scores.sum())
    classes = np.concatenate([rng.choice(live, pairs - pairs // 2), weighted])
    indices = rng.integers(len(TRUTH), size=pairs)
    agreed, oscillating_pairs = 0, 0
    near: list[Any] = []
    far: list[Any] = []
    for key, index in track(
        list(zip(classes, indices, strict=True)), description="LSODA", disable=pairs < 100
    ):
        edges, vector = edges_of(str(key)), TRUTH[index : index + 1]
        mine = judge_compiled(edges, vector)
        oscillating_pairs += mine.count
        if mine.count == judge_lsoda(edges, vector).count:
            agreed += 1
            continue
        rate = _distance_from_hopf(edges, vector)
        entry = {"key": str(key), "vector": int(index), "growth_rate": rate}
        (near if abs(rate) <= HOPF_MARGIN else far).append(entry)
    return {
        "pairs": pairs,
        "oscillating": oscillating_pairs,
        "agreed": agreed,
        "differ_near_a_hopf_point": near,
        "differ_elsewhere": far,
    }


def _distance_from_hopf(edges: Edges, vector: Any) -> float:
    """Growth rate of the spiral at the equilibrium nearest to the mean of the course."""
    mean = time_courses(edges, vector, TO_THE_END).proteins[0].mean(axis=1)
    equilibrium = nearest_equilibrium(edges, vector[0], mean)
    return np.inf if equilibrium is None else complex_growth_rate(edges, vector[0], equilibrium)


def early_exit_changes(pairs: int) -> dict[str, int]:
    """Verdicts that the early exit changes, over random classes with 30 vectors each."""
    rng = np.random.Generator(np.random.Philox(key=2))
    changed = 0
    for key in rng.choice(live_classes(), pairs // 30):
        first = 30 * int(rng.integers(len(TRUTH) // 30))
        edges, vectors = edges_of(str(key)), TRUTH[first : first + 30]
        usual = judge_compiled(edges, vectors)
        changed += int(
            np.sum(usual.oscillates != judge_compiled(edges, vectors, TO_THE_END).oscillates)
        )
    return {"verdicts": pairs // 30 * 30, "changed": changed}


def ring_verdicts(key: str) -> dict[str, Any]:
    """Verdicts on a single negative ring against the sign of its growth rate."""
    edges = edges_of(key)
    rates = np.array(
        [growth_rate(edges, vector, ring_equilibrium(edges, vector)) for vector in TRUTH]
    )
    lenient = METHOD._replace(min_amplitude_ratio=0.0, max_period_cv=np.inf)
    found = judge_compiled(edges, TRUTH).oscillates
    missed = rates[~found & (rates > 0)]
    return {
        "unstable": int(np.sum(rates > 0)),
        "oscillating": int(found.sum()),
        "false_positives": int(np.sum(found & (rates <= 0))),
        "false_positives_without_damping_tests": int(
            np.sum(judge_compiled(edges, TRUTH, lenient).oscillates & (rates <= 0))
        ),
        "misses": len(missed),
        "largest_growth_rate_missed": float(missed.max(initial=0.0)),
    }


def set_scores(vector_set: VectorSet, count: int) -> dict[str, int]:
    """Counts of every class on one set."""
    with ThreadPoolExecutor(2) as pool:
        counts = pool.map(
            lambda key: oscillating(key, KINETICS_SEED, vector_set, count), all_keys()
        )
        return dict(zip(all_keys(), counts, strict=True))


def retest_correlation() -> dict[str, float]:
    """Spearman's rank correlation of 256 train vectors with truth."""
    live, train = live_classes(), set_scores(VectorSet.TRAIN, 256)
    return {
        name: float(spearmanr([train[key] for key in keys], [truth_score(key) for key in keys])[0])
        for name, keys in (("all classes", list(all_keys())), ("classes that may oscillate", live))
    }


def arm_regrets(searches: int) -> dict[str, Any]:
    """Regret of what each arm selects at 64 candidates, over seeds 0, 1, .."""
    holdout = set_scores(VectorSet.HOLDOUT, 1024)

    def score(spec: Any) -> Any:
        # The train set's score selects nothing.
        counts = {"train_oscillating": 0, "holdout_oscillating": holdout[spec["key"]]}
        return {"key": spec["key"], **counts, "best": None}

    found = {}
    for name, arm in ARMS.items():
        ended = [
            completed_search(arm(f"{seed:032x}"), SearchLimits(), KINETICS_SEED, score)
            for seed in range(searches)
        ]
        regrets = regret_curve([one.selected(64) for one in ended])
        quartiles = np.quantile(regrets, [0.25, 0.5, 0.75])
        found[name] = {
            "regret_quartiles": [round(float(one), 4) for one in quartiles],
            "mean_regret": round(float(np.mean(regrets)), 4),
            "mean_attempts": float(np.mean([one.attempts for one in ended])),
        }
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Study verdicts, scores and arms.")
    parser.add_argument("--part", action="append", choices=PARTS, help="not all of them")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--early-exits", type=int, default=30_720)
    parser.add_argument("--searches", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "lsoda": lambda: lsoda_disagreements(given.pairs),
        "early-exit": lambda: early_exit_changes(given.early_exits),
        "rings": lambda: {key: ring_verdicts(key) for key in RINGS},
        "retest": retest_correlation,
        "arms": lambda: arm_regrets(given.searches),
    }
    found = {name: parts[name]() for name in given.part or parts}
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
