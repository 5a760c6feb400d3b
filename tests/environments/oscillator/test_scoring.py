"""The score of a topology as a task: pure, and checked cheaply."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba.core import caching

from probebench.environments import oscillator
from probebench.environments.oscillator import compiled
from probebench.environments.oscillator.kinetics import VectorSet, kinetic_vectors
from probebench.environments.oscillator.scoring import (
    check_score,
    judge_compiled,
    judge_reference,
    oscillating,
    run_score_task,
    score_task_spec,
)
from probebench.kernel.canonical import decode, encode
from probebench.kernel.errors import HostError
from probebench.wire.oscillator import all_topologies, edges_of, key_of, relabellings
from tests.environments.oscillator.circuits import SEED

SPEC = score_task_spec("001200210", SEED, inner_budget=32, holdout=48)
VALUE = run_score_task(SPEC)


def test_a_score_counts_oscillating_vectors_of_both_sets() -> None:
    edges = edges_of("001200210")
    for name, vector_set, count in (
        ("train_oscillating", VectorSet.TRAIN, 32),
        ("holdout_oscillating", VectorSet.HOLDOUT, 48),
    ):
        vectors = kinetic_vectors(SEED, vector_set, count)
        assert VALUE[name] == judge_reference(edges, vectors).count > 0


def test_spec_and_value_are_plain_json_and_depend_on_the_spec_alone() -> None:
    spec, value = decode(encode(SPEC)), decode(encode(VALUE))
    assert run_score_task(spec) == value
    assert run_score_task(spec, judge_reference) == value
    other = run_score_task(spec | {"kinetics_seed": SEED[::-1]})
    assert other["best"] != value["best"]


def test_another_process_computes_the_same_bytes() -> None:
    program = (
        "import json, sys\n"
        "from probebench.environments.oscillator.scoring import run_score_task\n"
        "print(json.dumps(run_score_task(json.load(sys.stdin)), sort_keys=True))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(SPEC),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == json.dumps(VALUE, sort_keys=True)


def test_every_relabelling_has_one_score() -> None:
    # Not so if a proposal were simulated as it is labelled.
    edges = edges_of("001200210")
    vectors = kinetic_vectors(SEED, VectorSet.TRAIN, 256)
    assert len({judge_compiled(one, vectors).count for one in relabellings(edges)}) > 1
    keys = {key_of(one) for one in relabellings(edges)}
    assert [oscillating(key, SEED, VectorSet.TRAIN, 32) for key in keys] == [
        VALUE["train_oscillating"]
    ]


def test_the_diagnostic_is_the_vector_of_the_largest_contrast() -> None:
    found = judge_reference(edges_of("001200210"), kinetic_vectors(SEED, VectorSet.TRAIN, 32))
    best = int(np.argmax(found.contrast))
    assert VALUE["best"] == {
        "vector": best,
        "contrast": found.contrast[best],
        "period": found.period[best],
    }


def test_a_topology_that_its_structure_silences_is_not_simulated() -> None:
    def never(*_given: Any) -> Any:
        raise AssertionError

    value = run_score_task(SPEC | {"key": "001002020"}, never)
    assert value == {
        "key": "001002020",
        "train_oscillating": 0,
        "holdout_oscillating": 0,
        "best": None,
    }


def test_a_machine_without_a_folder_for_the_kernel_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    monkeypatch.delitem(sys.modules, compiled.__name__)
    monkeypatch.delattr(oscillator, "compiled")
    with pytest.raises(HostError, match="set NUMBA_CACHE_DIR"):
        judge_compiled(edges_of("001200210"), kinetic_vectors(SEED, VectorSet.TRAIN, 4))


def test_a_key_that_is_not_canonical_is_refused() -> None:
    with pytest.raises(ValueError, match="not canonical"):
        run_score_task(SPEC | {"key": "100020002"[::-1]})
    wrong = next(one for one in all_topologies() if "".join(map(str, one)) != key_of(one))
    with pytest.raises(ValueError, match="not canonical"):
        oscillating("".join(map(str, wrong)), SEED, VectorSet.TRAIN, 4)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"key": "002200020"}, "score is of"),
        ({"train_oscillating": 33}, "train_oscillating is 33"),
        ({"train_oscillating": -1}, "train_oscillating is -1"),
        ({"holdout_oscillating": 49}, "from 0 to 48"),
        ({"holdout_oscillating": 4.0}, "whole number"),
        ({"holdout_oscillating": True}, "whole number"),
        ({"best": None}, "best is null exactly"),
        ({"train_oscillating": 0}, "best is null exactly"),
        ({"extra": 1}, "exactly the fields"),
    ],
)
def test_a_value_that_can_not_be_the_score_is_refused(
    changed: dict[str, Any], sentence: str
) -> None:
    check_score(SPEC, VALUE)
    with pytest.raises(ValueError, match=sentence):
        check_score(SPEC, VALUE | changed)


def test_a_silent_topology_can_have_no_score_but_zero() -> None:
    spec = SPEC | {"key": "001002020"}
    value = run_score_task(spec)
    check_score(spec, value)
    with pytest.raises(ValueError, match="from 0 to 0"):
        check_score(spec, value | {"holdout_oscillating": 1})
