"""Independent checks of a verdict: another integrator, and linear stability.

The equations are written here once more, in the textbook form with powers and
one quotient for each edge, so that an error in ``dynamics`` is not repeated.
Importing this module imports numba and SciPy's solvers; nothing of a session
does.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numba import njit
from scipy.integrate import ODEintWarning, odeint
from scipy.optimize import brentq, root

from probebench.environments.oscillator.kinetics import Reals
from probebench.environments.oscillator.method import METHOD, Method
from probebench.environments.oscillator.verdict import Verdicts, judge_courses
from probebench.wire.oscillator import ACTIVATION, GENES, NONE, Edges
from probebench.wire.oscillator_structure import cycles

TOLERANCE = 1e-10
MAX_STEPS = 100_000


@njit(error_model="numpy")
def right_hand_side(state: Any, _time: float, edges: Any, vector: Any) -> Any:
    """Derivatives of (m_0, m_1, m_2, p_0, p_1, p_2), (6,)."""
    found = np.empty(6)
    for i in range(3):
        activity = 1.0
        for j in range(3):
            slot = 3 * i + j
            if edges[slot] != 0:
                w = (state[3 + j] / vector[9 + slot]) ** vector[18 + slot]
                activity *= w / (1.0 + w) if edges[slot] == 1 else 1.0 / (1.0 + w)
        leak = vector[6 + i]
        found[i] = vector[i] * (leak + (1.0 - leak) * activity - state[i])
        found[3 + i] = vector[3 + i] * (state[i] - state[3 + i])
    return found


def judge_lsoda(
    edges: Edges,
    vectors: Reals,
    method: Method = METHOD,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> Verdicts:
    """Verdicts on time courses of ODEPACK's LSODA, with the same window and criteria.

    tolerance: relative and absolute.  max_steps: between two samples; the
    transient is one such step, and SciPy's default of 500 does not carry
    through it.  Raises ArithmeticError where the integrator gives up: what it
    returns then is not filled in.
    """
    times = method.transient_time + method.step * np.arange(1, method.window_steps + 1)
    effects = np.array(edges)
    proteins = np.empty((len(vectors), GENES, method.window_steps))
    for index, vector in enumerate(np.array(vectors)):
        with warnings.catch_warnings():
            # Raised below, for a warning leaves the unfilled array in use.
            warnings.simplefilter("ignore", ODEintWarning)
            levels, report = odeint(
                right_hand_side,
                np.full(2 * GENES, method.initial_level),
                np.concatenate([[0.0], times]),
                args=(effects, vector),
                rtol=tolerance,
                atol=tolerance,
                mxstep=max_steps,
                full_output=True,
            )
        if report["message"] != "Integration successful.":
            raise ArithmeticError(f"LSODA gave up on vector {index}: {report['message']}")
        proteins[index] = levels[1:, GENES:].T
    return judge_courses(proteins, method)


def jacobian(edges: Edges, vector: Reals, proteins: Reals) -> Reals:
    """Derivatives of the slopes by the state, (6, 6), where mRNA equals protein, (3,)."""
    found = np.zeros((2 * GENES, 2 * GENES))
    for i in range(GENES):
        found[i, i] = -vector[i]
        found[GENES + i, i], found[GENES + i, GENES + i] = vector[3 + i], -vector[3 + i]
        factors = [_regulation(edges, vector, i, j, proteins[j]) for j in range(GENES)]
        activity = float(np.prod([factor for factor, _ in factors]))
        for j, (_, slope) in enumerate(factors):
            found[i, GENES + j] = vector[i] * (1.0 - vector[6 + i]) * activity * slope
    return found


def growth_rate(edges: Edges, vector: Reals, proteins: Reals) -> float:
    """Largest real part of an eigenvalue at an equilibrium; positive if it is unstable."""
    return float(np.linalg.eigvals(jacobian(edges, vector, proteins)).real.max())


def complex_growth_rate(edges: Edges, vector: Reals, proteins: Reals) -> float:
    """Largest real part of a complex eigenvalue, whose change of sign is a Hopf point.

    Minus infinity if all eigenvalues are real.
    """
    values = np.linalg.eigvals(jacobian(edges, vector, proteins))
    turning = values.real[values.imag != 0]
    return float(turning.max()) if turning.size else -np.inf


def ring_equilibrium(edges: Edges, vector: Reals) -> Reals:
    """Protein levels, (3,), of a single negative ring, whose equilibrium is unique.

    Raises ValueError unless the topology is one negative cycle of three genes
    and nothing else.
    """
    found = cycles(edges)
    if len(found) != 1 or not found[0].negative or np.count_nonzero(edges) != GENES:
        raise ValueError(f"{edges} is not a single negative ring of three genes")
    first, second, third = found[0].genes

    def around(level: float) -> Reals:
        proteins = np.zeros(GENES)
        proteins[first] = level
        for source, target in ((first, second), (second, third), (third, first)):
            leak = vector[6 + target]
            factor, _ = _regulation(edges, vector, target, source, proteins[source])
            if target == first:
                return np.array([leak + (1.0 - leak) * factor, *proteins])
            proteins[target] = leak + (1.0 - leak) * factor
        raise AssertionError

    # Around a negative ring the level that comes back falls as the level rises.
    level = float(brentq(lambda x: around(x)[0] - x, 1e-9, 1.0 + 1e-9, xtol=1e-15))
    return around(level)[1:]


def nearest_equilibrium(edges: Edges, vector: Reals, proteins: Reals) -> Reals | None:
    """The equilibrium, (3,) protein levels, that Newton's method finds from ``proteins``."""

    def imbalance(levels: Reals) -> Reals:
        state = np.concatenate([levels, levels])
        slopes: Reals = right_hand_side(state, 0.0, np.array(edges), np.array(vector))[:GENES]
        return slopes / vector[:GENES]

    found = root(imbalance, proteins, tol=1e-13)
    settled = found.success and bool(np.all(found.x > 0))
    return found.x if settled else None


def _regulation(
    edges: Edges, vector: Reals, target: int, source: int, level: float
) -> tuple[float, float]:
    """An edge's factor of the activity, and the derivative of its logarithm."""
    slot = GENES * target + source
    if edges[slot] == NONE:
        return 1.0, 0.0
    exponent = vector[18 + slot]
    w = (level / vector[9 + slot]) ** exponent
    if edges[slot] == ACTIVATION:
        return w / (1.0 + w), exponent / level / (1.0 + w)
    return 1.0 / (1.0 + w), -exponent / level * w / (1.0 + w)
