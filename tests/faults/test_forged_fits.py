"""A session whose fits were forged as they were made: every record is consistent but for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probebench.app.verify import verify_folder
from probebench.environments.optical.environment import OpticalEnvironment
from probebench.kernel.canonical import Json
from probebench.kernel.episode import Task
from tests.environments.optical.forgeries import FORGERIES, Forgery, every, put
from tests.environments.test_conformance import CASES
from tests.faults.share import share
from tests.rigs import constant_rig

CASE = CASES["optical assisted"]
RESPONSE = "turns/turn_0003_response.json"
HONEST_RUN = OpticalEnvironment.run


def overflow(saved: dict[str, Any]) -> None:
    """Every run is told to have met a number that is not finite, and all that follows."""
    for run in saved["starts"]:
        run.update(
            end_opd_nm=None,
            objective=None,
            gradient_norm_per_nm=None,
            iterations=0,
            status="not_finite",
            joined_start_index=None,
        )


TOLD_AS_A_FAILURE = every(overflow, FORGERIES["status and all that goes with it"][0])


def two_minima_exchanged(saved: dict[str, Any]) -> None:
    """One run that joined ended just where another did."""
    joined = [run for run in saved["starts"] if run["status"] == "joined"]
    first, second = joined[0], joined[1]
    for field in ("end_opd_nm", "objective"):
        first[field] = second[field]


# What only a search from the same start can show.
PLAIN_PASSES: dict[str, Forgery] = {
    "fewer iterations": put("starts", 3, "iterations", value=0),
    "two ends exchanged": two_minima_exchanged,
}


def session(folder: Path, monkeypatch: pytest.MonkeyPatch, forge: Forgery) -> None:
    """Run a session whose estimator lies."""

    def forged(self: OpticalEnvironment, task: Task) -> Json:
        value = HONEST_RUN(self, task)
        forge(value)
        return value

    with monkeypatch.context() as patched:
        patched.setattr(OpticalEnvironment, "run", forged)
        CASE.run(folder)


def found(folder: Path, *, refit: bool) -> str | None:
    failure = verify_folder(constant_rig(), folder, refit=refit).failure
    return None if failure is None else failure.artifact


def test_a_session_that_tells_a_fit_as_a_failure_is_found_without_refit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path / "a", monkeypatch, TOLD_AS_A_FAILURE)
    assert found(tmp_path / "a", refit=False) == RESPONSE


@pytest.mark.parametrize("name", PLAIN_PASSES)
def test_what_passes_without_refit_is_found_with_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path / "a", monkeypatch, PLAIN_PASSES[name])
    assert found(tmp_path / "a", refit=False) is None
    assert found(tmp_path / "a", refit=True) == RESPONSE


@pytest.mark.parametrize("name", share([*FORGERIES], 12))
def test_refit_alone_finds_every_forgery(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check of consistency, which would find them before."""
    session(tmp_path / "a", monkeypatch, FORGERIES[name][0])
    monkeypatch.setattr(OpticalEnvironment, "check", lambda *_: None)
    assert found(tmp_path / "a", refit=False) is None
    assert found(tmp_path / "a", refit=True) == RESPONSE
