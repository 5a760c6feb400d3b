"""The compiled kernel is the NumPy reference to the last bit, in any company."""

from __future__ import annotations

import platform
import types
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numba import njit

from probebench.environments.oscillator import compiled
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.scoring import judge_compiled, judge_reference
from probebench.environments.oscillator.verdict import Verdicts
from probebench.wire.oscillator import all_keys, edges_of
from tests.environments.oscillator.circuits import (
    CROWDED,
    GOODWIN,
    REPRESSILATOR,
    TRUTH,
    relabelled,
)

FREQUENT = edges_of("001200210")  # about one vector in five oscillates


def permuted(found: Verdicts, order: Any) -> Verdicts:
    return Verdicts(found.oscillates[order], found.contrast[order], found.period[order])


@pytest.mark.parametrize("index", range(0, 2_070, 345))
def test_kernel_and_reference_agree_on_classes_of_every_kind(index: int) -> None:
    edges = edges_of(all_keys()[index])
    vectors = TRUTH[index : index + 24]
    assert judge_compiled(edges, vectors).same_bits(judge_reference(edges, vectors))


@pytest.mark.parametrize("edges", [REPRESSILATOR, GOODWIN, CROWDED, FREQUENT])
def test_kernel_and_reference_agree_where_many_oscillate(edges: tuple[int, ...]) -> None:
    expected = judge_reference(edges, TRUTH[:64])
    assert expected.count > 0
    assert judge_compiled(edges, TRUTH[:64]).same_bits(expected)


@pytest.mark.parametrize(
    "changed",
    [
        {"early_exit": False},
        {"step": 0.2, "block_steps": 100, "transient_blocks": 3, "window_blocks": 8},
        {"min_cycles": 2, "min_amplitude_ratio": 0.0, "max_period_cv": 10.0, "min_contrast": 1e-3},
        {"rest_range": 0.2},
    ],
)
def test_kernel_and_reference_follow_the_method_that_they_are_given(
    changed: dict[str, Any],
) -> None:
    method = METHOD._replace(**changed)
    found = judge_compiled(FREQUENT, TRUTH[:48], method)
    assert found.same_bits(judge_reference(FREQUENT, TRUTH[:48], method))


def test_a_difference_in_the_last_bit_is_seen() -> None:
    found = judge_compiled(FREQUENT, TRUTH[:48])
    other = judge_compiled(FREQUENT, TRUTH[:48])
    first = int(np.flatnonzero(other.oscillates)[0])
    other.period[first] = np.nextafter(other.period[first], 0.0)
    assert not found.same_bits(other)


@pytest.mark.parametrize("judge", [judge_compiled, judge_reference])
def test_the_order_of_a_batch_changes_no_verdict(judge: Any) -> None:
    order = np.random.Generator(np.random.Philox(key=5)).permutation(64)
    alone = judge(FREQUENT, TRUTH[:64])
    assert judge(FREQUENT, TRUTH[:64][order]).same_bits(permuted(alone, order))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 31])
def test_the_company_of_a_vector_changes_no_verdict(size: int) -> None:
    together = judge_compiled(FREQUENT, TRUTH[:62])
    for first in range(0, 62 - size + 1, size):
        part = slice(first, first + size)
        assert judge_compiled(FREQUENT, TRUTH[part]).same_bits(permuted(together, part))


def test_no_vectors_have_no_verdicts() -> None:
    assert judge_compiled(FREQUENT, TRUTH[:0]).count == 0


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("edges", [REPRESSILATOR, FREQUENT, CROWDED])
def test_relabelled_genes_have_the_same_verdicts(
    edges: tuple[int, ...], order: tuple[int, ...]
) -> None:
    found = judge_compiled(*relabelled(edges, TRUTH[:256], order))
    expected = judge_compiled(edges, TRUTH[:256])
    assert np.array_equal(found.oscillates, expected.oscillates)
    # With up to two regulators of a gene no product is taken in another order.
    if max(sum(map(bool, edges[3 * i : 3 * i + 3])) for i in range(3)) < 3:
        assert np.array_equal(found.contrast, expected.contrast)


def test_the_kernel_gives_the_same_bits_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function in vars(compiled).items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(compiled, name, function.py_func)
    # Interpreted, the loop over the lanes takes its time: few and long steps.
    short = METHOD._replace(
        step=0.5, block_steps=25, transient_blocks=1, window_blocks=2, min_cycles=1
    )
    edges, vectors = FREQUENT, TRUTH[:10]
    found = compiled.judged(edges, vectors, short)
    assert found.count > 0
    assert found.same_bits(judge_reference(edges, vectors, short))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 assembly")
def test_the_default_error_model_would_not_be_vectorised() -> None:
    usual = _divisions(error_model="numpy")
    checked = _divisions(error_model="python")
    assert usual["packed"] >= 12  # three quotients for each of four slopes
    assert checked["packed"] == 0 < checked["scalar"]


def _divisions(error_model: str) -> dict[str, int]:
    """Division instructions of the integration loop, compiled anew with a model."""
    scope = dict(vars(compiled))
    for name in ("_regulation", "_factor", "_mrna_slope", "_slopes", "_state", "_store", "_moved"):
        _compile(scope, name, error_model=error_model, forceinline=True)
    _compile(scope, "_weighted", error_model=error_model, forceinline=True)
    advance = _compile(scope, "_advance", error_model=error_model)
    advance(np.zeros(compiled._SIZE), np.zeros((1, 3 * compiled.LANES)), METHOD)
    (assembly,) = advance.inspect_asm().values()
    return {"packed": assembly.count("divpd"), "scalar": assembly.count("divsd")}


def _compile(scope: dict[str, Any], name: str, **options: Any) -> Any:
    code = vars(compiled)[name].py_func.__code__
    scope[name] = njit(**options)(types.FunctionType(code, scope))
    return scope[name]
