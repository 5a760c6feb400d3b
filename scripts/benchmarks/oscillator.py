"""What verdicts cost, against the solvers that one would reach for.

    uv run --group bench python scripts/benchmarks/oscillator.py [--json] [--whole-table]

One workload for all: 24 classes with 48 kinetic vectors each, from setting up
a model to a verdict on every vector.  libRoadRunner integrates by CVODE from
SBML; SciPy's odeint and solve_ivp call a right-hand side compiled by numba,
solve_ivp for a sixth of the classes, scaled.  Peers have the tolerances that
--rtol and --atol give.  Compilation by numba is left out everywhere.  Further:
the three arms with 64 candidates each, and the table of exact truth (with
--whole-table; otherwise a twentieth of it, scaled), both without anything
published.

Times are the processor's, for all of it runs on one thread, and other work on
the machine disturbs them less.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
from scipy.integrate import odeint, solve_ivp

from probebench.environments.oscillator.arms import ARMS
from probebench.environments.oscillator.kinetics import Reals, VectorSet, kinetic_vectors
from probebench.environments.oscillator.method import METHOD
from probebench.environments.oscillator.oracle import right_hand_side
from probebench.environments.oscillator.reference import TRUTH_SEED
from probebench.environments.oscillator.scoring import judge_compiled, run_score_task
from probebench.environments.oscillator.search import SearchLimits, completed_search
from probebench.environments.oscillator.verdict import judge_courses
from probebench.wire.oscillator import Edges, all_keys, edges_of
from probebench.wire.oscillator_structure import is_silent

CLASSES, VECTORS = 24, 48
SOLVE_IVP_PART = 6
SEED = "00112233445566778899aabbccddeeff"
LIVE = [key for key in all_keys() if not is_silent(edges_of(key))]
TIMES = METHOD.transient_time + METHOD.step * np.arange(1, METHOD.window_steps + 1)
START = np.full(6, METHOD.initial_level)
FAMILIES = (("dm", 3), ("dp", 3), ("l", 3), ("K", 9), ("n", 9))
Solver = Callable[[Edges, Reals], Reals]


# -- peers: a topology and (vectors, 27) to (vectors, 3, 1200) protein levels ---


def by_odeint(edges: Edges, vectors: Reals, rtol: float, atol: float) -> Reals:
    """SciPy's interface to LSODA."""
    effects, times = np.array(edges), np.concatenate([[0.0], TIMES])
    courses = [
        odeint(right_hand_side, START, times, (effects, one), rtol=rtol, atol=atol, mxstep=100_000)
        for one in vectors
    ]
    return np.array(courses)[:, 1:, 3:].swapaxes(1, 2)


def by_solve_ivp(edges: Edges, vectors: Reals, rtol: float, atol: float) -> Reals:
    """SciPy's newer interface, with its default method, RK45."""
    effects = np.array(edges)

    def course(one: Reals) -> Reals:
        found = solve_ivp(
            lambda moment, state: right_hand_side(state, moment, effects, one),
            (0.0, TIMES[-1]),
            START,
            t_eval=TIMES,
            rtol=rtol,
            atol=atol,
        )
        levels: Reals = found.y[3:]
        return levels

    return np.array([course(one) for one in vectors])


def by_roadrunner(edges: Edges, vectors: Reals, rtol: float, atol: float) -> Reals:
    """LibRoadRunner's CVODE, one model for each topology."""
    runner = importlib.import_module("roadrunner").RoadRunner(sbml(edges))
    runner.selections = ["time", "p0", "p1", "p2"]
    integrator = runner.getIntegrator()
    integrator.relative_tolerance, integrator.absolute_tolerance = rtol, atol
    order = runner.model.getGlobalParameterIds()
    names = [f"{family}{index}" for family, size in FAMILIES for index in range(size)]
    courses = []
    for one in vectors:
        values = dict(zip(names, one, strict=True))
        levels = [values.get(name, METHOD.initial_level) for name in order]
        runner.model.setGlobalParameterValues(list(range(len(order))), levels)
        runner.simulate(0.0, TIMES[0], 2)
        courses.append(np.array(runner.simulate(TIMES[0], TIMES[-1], len(TIMES)))[:, 1:].T)
    return np.array(courses)


def sbml(edges: Edges) -> str:
    """The circuit as SBML level 3, its equations as rate rules."""
    levels = [f"{kind}{gene}" for kind in "mp" for gene in range(3)]
    constants = [f"{family}{index}" for family, size in FAMILIES for index in range(size)]
    parameters = [f'<parameter id="{name}" value="0.5" constant="false"/>' for name in levels]
    parameters += [f'<parameter id="{name}" value="1" constant="true"/>' for name in constants]
    rules = []
    for gene in range(3):
        activity = "<cn>1</cn>"
        for slot in range(3 * gene, 3 * gene + 3):
            if edges[slot]:
                activity = _apply("times", activity, _factor(slot, edges[slot]))
        rest = _apply("minus", "<cn>1</cn>", f"<ci>l{gene}</ci>")
        drive = _apply("plus", f"<ci>l{gene}</ci>", _apply("times", rest, activity))
        for name, rate, target in (
            (f"m{gene}", "dm", drive),
            (f"p{gene}", "dp", f"<ci>m{gene}</ci>"),
        ):
            change = _apply(
                "times", f"<ci>{rate}{gene}</ci>", _apply("minus", target, f"<ci>{name}</ci>")
            )
            rules.append(
                f'<rateRule variable="{name}"><math xmlns="http://www.w3.org/1998/Math/MathML">'
                f"{change}</math></rateRule>"
            )
    return (
        '<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">'
        f"<model><listOfParameters>{''.join(parameters)}</listOfParameters>"
        f"<listOfRules>{''.join(rules)}</listOfRules></model></sbml>"
    )


def _factor(slot: int, effect: int) -> str:
    ratio = _apply("divide", f"<ci>p{slot % 3}</ci>", f"<ci>K{slot}</ci>")
    w = _apply("power", ratio, f"<ci>n{slot}</ci>")
    return _apply("divide", w if effect == 1 else "<cn>1</cn>", _apply("plus", "<cn>1</cn>", w))


def _apply(operator: str, *terms: str) -> str:
    return f"<apply><{operator}/>{''.join(terms)}</apply>"


PEERS: dict[str, Callable[..., Reals]] = {
    "libRoadRunner CVODE": by_roadrunner,
    "odeint, numba": by_odeint,
    "solve_ivp, numba": by_solve_ivp,
}

# -- measurements --------------------------------------------------------------


def workload() -> list[tuple[Edges, Reals]]:
    """Classes drawn alike from those that may oscillate, each with its part of the truth set."""
    vectors = np.array(kinetic_vectors(TRUTH_SEED, VectorSet.TRUTH, 4096))
    keys = np.random.Generator(np.random.Philox(key=7)).choice(LIVE, CLASSES, replace=False)
    parts = vectors[: CLASSES * VECTORS].reshape(CLASSES, VECTORS, -1)
    return [(edges_of(str(key)), part) for key, part in zip(keys, parts, strict=True)]


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what ``run`` returned."""
    started = time.process_time()
    found = run()
    return time.process_time() - started, found


def against_peers(rtol: float, atol: float, repeats: int) -> dict[str, Any]:
    """Time of the workload for each, and how often a peer's verdict is another."""
    work = workload()
    runs = [timed(lambda: list(starmap(judge_compiled, work))) for _ in range(repeats)]
    mine_s = statistics.median(seconds for seconds, _ in runs)
    mine = np.array([found.oscillates for found in runs[0][1]])
    rows: dict[str, Any] = {"probebench": {"seconds": mine_s}}
    for name, solver in PEERS.items():
        if solver is by_roadrunner and importlib.util.find_spec("roadrunner") is None:
            rows[name] = {"skipped": "libroadrunner is not installed; it is in the group bench"}
            continue
        part = SOLVE_IVP_PART if solver is by_solve_ivp else 1
        seconds, found = peer_verdicts(partial(solver, rtol=rtol, atol=atol), work[::part])
        rows[name] = {
            "seconds": part * seconds,
            "times_slower": part * seconds / mine_s,
            "other_verdicts": int(np.sum(found != mine[::part])),
        }
    return {"verdicts": mine.size, "oscillating": int(np.sum(mine)), "rows": rows}


def peer_verdicts(solver: Solver, work: list[tuple[Edges, Reals]]) -> tuple[float, Any]:
    """Seconds that a peer takes for the workload, and its verdicts."""
    solver(work[0][0], work[0][1][:2])  # whatever it does once only
    return timed(
        lambda: np.array([judge_courses(solver(edges, part)).oscillates for edges, part in work])
    )


def three_arms() -> float:
    """Seconds of three searches, 64 candidates each, every score computed by each."""

    def run() -> None:
        for arm in ARMS.values():
            completed_search(arm(SEED), SearchLimits(), SEED, run_score_task)

    return timed(run)[0]


def truth_table(part: int) -> float:
    """Seconds of the whole table, from every ``part``-th class."""
    vectors = kinetic_vectors(TRUTH_SEED, VectorSet.TRUTH, 4096)
    keys = LIVE[::part]
    seconds = timed(lambda: [judge_compiled(edges_of(key), vectors) for key in keys])[0]
    return seconds * len(LIVE) / len(keys)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what verdicts cost.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rtol", type=float, default=1e-6)
    parser.add_argument("--atol", type=float, default=1e-9)
    parser.add_argument("--whole-table", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    judge_compiled(edges_of(LIVE[0]), kinetic_vectors(SEED, VectorSet.TRAIN, 8))
    found = {
        "machine": platform.machine(),
        "rtol": given.rtol,
        "atol": given.atol,
        "workload": against_peers(given.rtol, given.atol, given.repeats),
        "three_arms_s": three_arms(),
        "truth_table_s": truth_table(1 if given.whole_table else 20),
    }
    if given.json:
        print(json.dumps(found))
        return
    print("| solver | workload / s | times slower | other verdicts |\n|---|---|---|---|")
    for name, row in found["workload"]["rows"].items():
        if "skipped" in row:
            print(f"| {name} | {row['skipped']} | | |")
            continue
        slower, other = row.get("times_slower", 1.0), row.get("other_verdicts", 0)
        print(f"| {name} | {row['seconds']:.4f} | {slower:.0f} | {other} |")
    print(
        f"\nthree arms: {found['three_arms_s']:.1f} s; truth table: {found['truth_table_s']:.0f} s"
    )


if __name__ == "__main__":
    main()
