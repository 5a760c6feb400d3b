"""The score of a topology, and the task that computes it.

The score is the fraction of a frozen set's kinetic vectors under which the
canonical form oscillates; the objective, which is minimised, is 1 - score.
One inner evaluation is one kinetic vector of the train set; what is simulated
on the holdout set is counted apart, alike for every arm.  The canonical form
is always what is simulated: relabelled members of a class meet the vectors'
columns in another order, so that over one set their scores would differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from probebench.environments.oscillator.dynamics import time_courses
from probebench.environments.oscillator.kinetics import Reals, VectorSet, kinetic_vectors
from probebench.environments.oscillator.method import METHOD, Method
from probebench.environments.oscillator.verdict import Verdicts, judge_courses
from probebench.kernel.canonical import Json
from probebench.kernel.errors import HostError
from probebench.wire.oscillator import Edges, edges_of
from probebench.wire.oscillator_structure import is_silent

SCORE_TASK = "score"

Judge: TypeAlias = Callable[[Edges, Reals, Method], Verdicts]


def judge_compiled(edges: Edges, vectors: Reals, method: Method = METHOD) -> Verdicts:
    """Verdicts on a topology, as labelled, under (count, 27) vectors: the fast path.

    Raises HostError where numba finds no folder to keep what it compiles in.
    """
    try:
        # Takes a second to import, more where nothing is cached, and only a score needs it.
        from probebench.environments.oscillator.compiled import judged
    except RuntimeError as error:
        raise HostError(
            f"numba cannot keep the compiled kernel ({error}); "
            "set NUMBA_CACHE_DIR to a folder that can be written"
        ) from error
    return judged(edges, vectors, method)


def judge_reference(edges: Edges, vectors: Reals, method: Method = METHOD) -> Verdicts:
    """The same verdicts, to the last bit, by NumPy alone; about a hundred times slower."""
    return judge_courses(time_courses(edges, vectors, method).proteins, method)


def oscillating(
    key: str, seed_hex: str, vector_set: VectorSet, count: int, judge: Judge = judge_compiled
) -> int:
    """How many of the first ``count`` vectors of a set make a topology oscillate.

    key: of the class.  Raises ValueError for one that is not canonical.
    seed_hex: of the kinetic vectors, 32 hexadecimal digits.
    A topology whose structure excludes oscillation is not simulated.
    """
    edges = edges_of(key)
    if is_silent(edges):
        return 0
    return judge(edges, kinetic_vectors(seed_hex, vector_set, count), METHOD).count


def score_task_spec(key: str, kinetics_seed: str, inner_budget: int, holdout: int) -> Json:
    """Everything that a score depends on, for ``Task(kind="score")``.

    kinetics_seed: 128-bit seed of the study's vectors, 32 hexadecimal digits.
    inner_budget: train vectors to simulate; all are charged.
    holdout: holdout vectors to simulate.
    """
    return {
        "key": key,
        "kinetics_seed": kinetics_seed,
        "inner_budget": inner_budget,
        "holdout": holdout,
    }


def run_score_task(spec: Json, judge: Judge = judge_compiled) -> Json:
    """Score a topology; a pure function of ``spec``.

    Returns the counts of oscillating vectors of both sets, and ``best``: index,
    contrast and period of the train vector with the largest contrast (the
    first of equals), or null.  ``best`` is a diagnostic and no score: it is
    the figure of one vector, and comes out otherwise with other vectors.
    """
    key, seed_hex = spec["key"], spec["kinetics_seed"]
    train = kinetic_vectors(seed_hex, VectorSet.TRAIN, spec["inner_budget"])
    edges = edges_of(key)
    silent = is_silent(edges)
    found = None if silent else judge(edges, train, METHOD)
    return {
        "key": key,
        "train_oscillating": 0 if found is None else found.count,
        "holdout_oscillating": oscillating(
            key, seed_hex, VectorSet.HOLDOUT, spec["holdout"], judge
        ),
        "best": None if found is None else _best(found),
    }


def check_score(spec: Json, value: Json) -> None:
    """Check cheaply that ``value`` can be the score that ``spec`` asks for.

    Raises ValueError with a sentence that says what does not fit.
    """
    fields = {"key", "train_oscillating", "holdout_oscillating", "best"}
    if not isinstance(value, dict) or set(value) != fields:
        raise ValueError(f"a score has exactly the fields {', '.join(sorted(fields))}")
    if value["key"] != spec["key"]:
        raise ValueError(f"the score is of {value['key']!r}; asked for was {spec['key']!r}")
    silent = is_silent(edges_of(spec["key"]))
    for name, limit in (
        ("train_oscillating", spec["inner_budget"]),
        ("holdout_oscillating", spec["holdout"]),
    ):
        count, most = value[name], 0 if silent else limit
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= most:
            raise ValueError(f"{name} is {count!r}; it must be a whole number from 0 to {most}")
    if (value["best"] is None) != (value["train_oscillating"] == 0):
        raise ValueError("best is null exactly where no train vector oscillates")


def _best(found: Verdicts) -> Json:
    if found.count == 0:
        return None
    index = int(found.contrast.argmax())
    return {
        "vector": index,
        "contrast": float(found.contrast[index]),
        "period": float(found.period[index]),
    }
