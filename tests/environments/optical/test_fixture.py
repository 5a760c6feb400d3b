"""The hidden wavefront, and the camera that looks at it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probebench.environments.optical import config as configuration
from probebench.environments.optical.camera import calibration, draw_frame, draw_photons
from probebench.environments.optical.evaluator import evaluate
from probebench.environments.optical.fixture import Instrument, incident_opd_nm, secrets
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    PROBE_OPD_NM,
    ZERO_OPD_NM,
    config,
    document,
)

DRAWS = 3000


@pytest.fixture(scope="module")
def incidents() -> Any:
    """Wavefronts of many seeds, (DRAWS, 6) nm."""
    written = document()
    return np.array(
        [
            incident_opd_nm(
                configuration.parse(
                    {**written, "fixture": {**written["fixture"], "wavefront_seed": f"{seed:032x}"}}
                )
            )
            for seed in range(DRAWS)
        ]
    )


def test_the_rms_is_uniform_within_its_range(incidents: Any) -> None:
    rms_nm = np.linalg.norm(incidents, axis=1)
    assert rms_nm.min() >= 60
    assert rms_nm.max() <= 150
    assert stats.kstest(rms_nm, stats.uniform(60, 90).cdf).pvalue > 1e-3


def test_every_direction_of_the_six_modes_is_as_likely(incidents: Any) -> None:
    directions = incidents / np.linalg.norm(incidents, axis=1, keepdims=True)
    assert (np.abs(directions.mean(axis=0)) < 4 / math.sqrt(6 * DRAWS)).all()
    second = directions.T @ directions / DRAWS
    # On the sphere in six dimensions a square has mean 1/6 and variance 5/144.
    assert (np.abs(np.diag(second) - 1 / 6) < 4 * math.sqrt(5 / 144 / DRAWS)).all()
    assert np.abs(second - np.diag(np.diag(second))).max() < 4 / math.sqrt(48 * DRAWS)
    # The square of one coordinate is Beta(1/2, 5/2); of a cube's directions it is not.
    for square in (directions**2).T:
        assert stats.kstest(square, stats.beta(0.5, 2.5).cdf).pvalue > 1e-4


def test_the_wavefront_depends_on_its_own_seed_alone() -> None:
    written = document()
    other_detector = {**written["fixture"], "detector_seed": "0" * 32}
    other_wavefront = {**written["fixture"], "wavefront_seed": "0" * 32}
    first = incident_opd_nm(config())
    kept, changed = (
        incident_opd_nm(configuration.parse({**written, "name": "another", "fixture": f}))
        for f in (other_detector, other_wavefront)
    )
    assert np.array_equal(first, kept)
    assert np.abs(first - changed).max() > 1


def test_the_residual_is_the_incident_opd_less_the_command() -> None:
    instrument, incident = Instrument(config()), incident_opd_nm(config())
    flat = calibration(config()).optics.psf(np.zeros(6)) * 30_000
    assert np.array_equal(instrument.expected(incident.tolist()), flat)
    # With the sum for the residual, the negative would flatten the wavefront.
    assert instrument.expected((-incident).tolist()).max() < 0.5 * flat.max()


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_command_is_opd_and_not_the_height_of_a_mirror(factor: float) -> None:
    # Were it the height, half of the incident OPD would flatten the wavefront;
    # were its OPD halved, twice.
    instrument, incident = Instrument(config()), incident_opd_nm(config())
    peak = instrument.expected(incident.tolist()).max()
    assert instrument.expected((factor * incident).tolist()).max() < 0.95 * peak


def test_a_command_is_absolute() -> None:
    instrument = Instrument(config())
    before = instrument.expose(ZERO_OPD_NM, 0)
    instrument.expose(PROBE_OPD_NM, 1)
    assert np.array_equal(instrument.expose(ZERO_OPD_NM, 0), before)


def test_an_exposure_is_the_draw_of_the_detectors_seed() -> None:
    given, instrument = config(), Instrument(config())
    expected = instrument.expected(PROBE_OPD_NM)
    drawn = draw_frame(expected, 3.0, given.fixture.detector_seed, 4)
    assert np.array_equal(instrument.expose(PROBE_OPD_NM, 4), drawn)


def test_realised_photons_are_those_of_the_frame() -> None:
    given, instrument = config(), Instrument(config())
    photons = draw_photons(instrument.expected(PROBE_OPD_NM), given.fixture.detector_seed, 1)
    assert instrument.realised_photons(PROBE_OPD_NM, 1) == photons.sum()
    noise = instrument.expose(PROBE_OPD_NM, 1) - photons
    assert abs(noise.std() - 3.0) < 4 * 3.0 / math.sqrt(2 * noise.size)


def test_secrets_hold_every_hidden_number() -> None:
    given = config()
    incident = incident_opd_nm(given)
    evaluation = evaluate(given, COMMANDS_OPD_NM, (incident + 1.0).tolist())
    hidden = secrets(given, evaluation)
    for value in (
        *incident.tolist(),
        float(np.linalg.norm(incident)),
        given.name,
        given.fixture.wavefront_seed,
        given.fixture.detector_seed,
        int(given.fixture.wavefront_seed, 16),
        int(given.fixture.detector_seed, 16),
    ):
        assert value in hidden
    for name, figure in evaluation.items():
        if name in {"best_measured_exposure_index", "cramer_rao_floor_reason"}:
            continue
        for value in figure if isinstance(figure, list) else [figure]:
            assert value in hidden, name


def test_what_the_client_knows_anyway_is_no_secret() -> None:
    evaluation = evaluate(config(), COMMANDS_OPD_NM, PROBE_OPD_NM)
    hidden = secrets(config(), evaluation)
    assert 80.0 not in hidden
    assert evaluation["best_measured_exposure_index"] not in hidden
    assert not any(isinstance(value, bool) or value is None for value in hidden)
