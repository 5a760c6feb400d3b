"""What scripts/benchmarks/limits.py makes of its trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from probebench.environments.optical.estimator import fit, likelihood_of
from probebench.environments.optical.evaluator import cramer_rao_floor_nm
from probebench.environments.optical.propagation import Reals
from scripts.benchmarks.limit_studies import design_study
from scripts.benchmarks.limit_studies.designs import (
    best_designs,
    floor_figures,
    floors_nm,
    informations,
    probes,
    total,
    wavefronts,
)
from scripts.benchmarks.limit_studies.estimates import (
    MODES,
    basin_figures,
    controlled,
    rate,
    ratio_figures,
    root_mean,
)
from scripts.benchmarks.limit_studies.tables import markdown
from scripts.benchmarks.limit_studies.trials import (
    DEVELOPMENT,
    PROBE,
    ZERO,
    Command,
    Scene,
    Trial,
    descent,
    draw,
    is_same_minimum,
    judge,
    run,
)
from scripts.benchmarks.limits import STUDIES, efficiency_summary, row_trials
from tests.environments.optical.scenes import TWIN_SIGNS

SMALL = replace(DEVELOPMENT, pupil_samples=32, pixels=16)
SCENE = Scene("test", SMALL, (ZERO, PROBE))


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as one_thread:
        yield one_thread


def trial(error: float, *, right: bool = True, listed: bool = True) -> Trial:
    return Trial(
        right_basin=right,
        listed=listed,
        error=error,
        linear_error=0.9 * error,
        expected_linear_error=1.02,
        normalised_error=MODES * error,
        linear_normalised_error=MODES * 0.9 * error,
        floor_nm=2.0,
    )


# -- estimates -------------------------------------------------------------------


def test_the_standard_error_of_a_root_mean_is_the_spread_of_its_repeats() -> None:
    drawn = np.random.default_rng(1).standard_normal((2000, 200, 4)) ** 2
    roots, errors = np.array([root_mean(squares) for squares in drawn.mean(axis=2)]).T
    assert roots.mean() == pytest.approx(1, abs=0.005)
    assert errors.mean() == pytest.approx(roots.std(), rel=0.05)


def test_a_control_variate_keeps_the_mean_and_takes_off_what_it_explains() -> None:
    drawn = np.random.default_rng(2)
    control = drawn.standard_normal(4000)
    squares = 5 + 3 * control + 0.1 * drawn.standard_normal(4000)
    adjusted = controlled(squares, control)
    assert adjusted.mean() == pytest.approx(5, abs=0.01)
    assert adjusted.std() == pytest.approx(0.1, rel=0.1)
    assert abs(squares.mean() - 5) > 0.01


def test_a_rate_has_the_wilson_interval() -> None:
    # With no failure the lower end is 1 / (1 + z^2 / n), z = 1.96.
    found = rate(1000, 1000)
    assert found["rate"] == found["high"] == 1
    assert found["low"] == pytest.approx(1 / (1 + 1.959964**2 / 1000), abs=1e-7)


def test_the_ratio_is_of_the_right_basin_and_wrong_ones_stand_beside() -> None:
    right = [trial(error) for error in (0.5, 1.0, 2.1)]
    wrong = [trial(100.0, right=False, listed=False), trial(64.4, right=False)]
    without = [trial(np.inf, right=False, listed=False)]
    found = ratio_figures(right + wrong + without)
    assert found["ratio"] == pytest.approx(np.sqrt(1.2))
    assert found["ratio_of_all"] == pytest.approx(np.sqrt(168 / 5))
    assert found["first_order_ratio"] == pytest.approx(np.sqrt(1.02))
    # Here the errors are their first order over 0.9, so nothing is left to chance.
    assert found["controlled_ratio"] == pytest.approx(np.sqrt(1.02 / 0.9))
    assert found["controlled_standard_error"] == pytest.approx(0, abs=1e-12)
    assert found["normalised_error"] == pytest.approx(1 / 0.9)
    counts = basin_figures(right + wrong + without)
    assert (counts["trials"], counts["right_basin"], counts["rate"]) == (6, 3, 0.5)
    assert (counts["wrong_but_listed"], counts["without_estimate"]) == (1, 1)


# -- trials ----------------------------------------------------------------------


def test_ends_are_one_minimum_within_a_tenth_of_a_standard_deviation() -> None:
    fisher = np.diag([4.0, 1, 1, 1, 1, 1])  # a standard deviation of half a nanometre
    zero, step = np.zeros(6), np.eye(6)[0]
    assert is_same_minimum(zero, 0.049 * step, fisher)
    assert not is_same_minimum(zero, 0.051 * step, fisher)


def test_the_descent_from_the_truth_ends_where_the_estimate_lies() -> None:
    truth, frames_e = draw(SCENE, 0)
    result = fit(SMALL, frames_e, SCENE.commands_opd_nm)
    likelihood = likelihood_of(SMALL, frames_e, SCENE.commands_opd_nm)
    end = descent(likelihood, truth)
    assert np.linalg.norm(end - truth) > 0.1
    assert np.array(result.estimate_opd_nm) == pytest.approx(end, abs=1e-2)


def test_an_estimate_elsewhere_is_of_the_wrong_basin_and_may_be_listed() -> None:
    truth, frames_e = draw(SCENE, 0)
    found = fit(SMALL, frames_e, SCENE.commands_opd_nm)
    likelihood = likelihood_of(SMALL, frames_e, SCENE.commands_opd_nm)
    assert found.estimate_opd_nm is not None
    elsewhere = (TWIN_SIGNS * found.estimate_opd_nm).tolist()
    wrong = found.model_copy(update={"estimate_opd_nm": elsewhere, "other_basins": []})
    judged = judge(wrong, truth, likelihood, 4.0)
    assert (judged.right_basin, judged.listed, judged.estimated) == (False, False, True)
    assert judged.error == pytest.approx(np.sum((np.array(elsewhere) - truth) ** 2) / 4)
    right = judge(found, truth, likelihood, 4.0)
    assert (right.right_basin, right.listed, right.floor_nm) == (True, True, 2.0)


def test_a_fit_without_estimate_is_of_no_right_basin() -> None:
    truth, frames_e = draw(SCENE, 0)
    likelihood = likelihood_of(SMALL, frames_e, SCENE.commands_opd_nm)
    found = fit(SMALL, frames_e, SCENE.commands_opd_nm)
    failed = found.model_copy(update={"estimate_opd_nm": None})
    judged = judge(failed, truth, likelihood, 4.0)
    assert (judged.right_basin, judged.listed, judged.estimated) == (False, False, False)


def test_trials_are_the_same_in_one_thread_and_in_two_processes(executor: Executor) -> None:
    scenes = [(SCENE, 22), (replace(SCENE, label="other"), 1)]
    in_thread = run(executor, scenes)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert run(processes, scenes) == in_thread
    assert [len(of_scene) for of_scene in in_thread] == [22, 1]
    assert in_thread[0][0] != in_thread[1][0]


# -- designs ---------------------------------------------------------------------


def test_candidate_commands_differ_and_are_within_the_bound() -> None:
    found = probes()
    assert len(set(found)) == len(found) == 6 * 6 * 2 + 15 * 3 * 4
    assert ZERO not in found
    assert np.abs(found).max() <= DEVELOPMENT.command_bound_nm
    assert "-0.0" not in str(found)


def test_the_information_of_a_design_gives_the_evaluators_floor(executor: Executor) -> None:
    design = (ZERO, PROBE, probes()[20])
    incident = wavefronts("test", 3)
    floors = floors_nm(total(informations(executor, SMALL, incident, design), design))
    for opd_nm, floor_nm in zip(incident, floors, strict=True):
        expected, _ = cramer_rao_floor_nm(SMALL, [opd_nm - np.array(one) for one in design])
        assert floor_nm == pytest.approx(expected, rel=1e-9)


def test_the_best_designs_have_the_least_floors_in_order() -> None:
    def information(variance: float) -> Reals:
        return np.stack([np.eye(6), np.eye(6)]) / variance

    good, fair, poor = ((float(n), 0.0, 0.0, 0.0, 0.0, 0.0) for n in (1, 2, 3))
    of_command: dict[Command, Reals] = {
        ZERO: information(1),
        poor: information(4),
        good: information(1),
        fair: information(2),
    }
    assert best_designs(of_command, 2, 2) == [(ZERO, good), (ZERO, fair)]
    assert [set(design) for design in best_designs(of_command, 3, 1)] == [{ZERO, good, fair}]
    figures = floor_figures(total(of_command, (ZERO, good)), of_command[ZERO])
    assert figures["floor_nm_rms"] == pytest.approx(np.sqrt(3))
    assert figures["floor_over_reference"] == pytest.approx(np.sqrt(0.5))


# -- the document ----------------------------------------------------------------


def test_the_summary_leaves_out_the_cells_of_few_photons() -> None:
    def cell(photons: int, ratio: float) -> dict[str, Any]:
        errors = {"standard_error": 0.03, "controlled_standard_error": 0.01}
        ratios = {"ratio": ratio, "controlled_ratio": ratio + 0.5}
        return {"photons": photons, "trials": 10, "right_basin": 9, **errors, **ratios}

    found = efficiency_summary([cell(300, 2.0), cell(1000, 1.1), cell(10_000, 0.9)])
    assert (found["cells"], found["trials"], found["wrong_basin"]) == (2, 20, 2)
    assert (found["least"], found["most"]) == (0.9, 1.1)
    assert found["average"] == pytest.approx(1.0)
    assert found["controlled_average"] == pytest.approx(1.5)
    assert found["standard_error"] == pytest.approx(0.03 / np.sqrt(2))


def test_rows_of_the_claim_share_twice_the_trials() -> None:
    def count(wavelength_nm: float, rms_nm: float) -> int:
        camera = replace(DEVELOPMENT, wavelength_nm=wavelength_nm)
        return row_trials(Scene("row", camera, (ZERO,), (rms_nm, rms_nm)), 500)

    assert (count(850.0, 60.0), count(850.0, 150.0)) == (334, 334)
    assert (count(850.0, 200.0), count(633.0, 60.0)) == (50, 50)


def test_all_studies_make_a_json_document_and_tables_of_equal_columns(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(design_study, "probes", lambda: probes()[:4])
    monkeypatch.setattr("scripts.benchmarks.limits.DEVELOPMENT", SMALL)
    monkeypatch.setattr(design_study, "DEVELOPMENT", SMALL)
    monkeypatch.setattr(design_study, "REPORTED_WAVEFRONTS", 4)
    monkeypatch.setattr("scripts.benchmarks.limits.PHOTONS", (1000, 10_000))
    monkeypatch.setattr("scripts.benchmarks.limits.READ_NOISE_E", (3.0,))
    monkeypatch.setattr("scripts.benchmarks.limits.INCIDENT_NM", (60.0, 200.0))
    document = {name: study(executor, 6) for name, study in STUDIES.items()}
    written = json.loads(json.dumps({**document, "camera": asdict(SMALL)}, allow_nan=False))
    lines = markdown(written)
    columns = [line.count("|") for line in lines]
    for above, below, line in zip(columns, columns[1:], lines[1:], strict=False):
        assert not above or not below or above == below, line
    text = "\n".join(lines)
    for cell in written["efficiency"]["cells"]:
        row = f"| {cell['photons']:,} | {cell['read_noise_e']:g} | 6 |"
        assert row in text
        assert f"{cell['ratio']:.3f} ± {cell['standard_error']:.3f}" in text
    assert f"on average {written['efficiency']['summary']['average']:.4f} ±" in text
    assert "| 1550 | 200 | 3 |" in text
    # Of the two incident RMS, one is of the claim.
    claimed = written["basins"]["claimed"]
    assert [(row["images"], row["trials"]) for row in claimed] == [(2, 12), (3, 12)]
    assert f"{claimed[0]['right_basin']} of 12 with 2 images (95 %:" in text
    assert "| default | 3 | Z4 +80, Z4 -80 |" in text
    assert "default, then the residual Z4" in text
