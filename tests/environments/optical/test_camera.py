"""The detector: expected electrons, photons, read noise, and what a draw depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from probebench.environments.optical import camera
from probebench.environments.optical.camera import (
    EXPECTATION_QUANTUM_E,
    Calibration,
    calibration,
    draw_frame,
    draw_photons,
    expected_frame,
)
from tests.environments.optical.scenes import (
    DEVELOPMENT,
    INCIDENT_OPD_NM,
    SMALL,
    config,
    document,
)

SEED = "42cf526e27117b01a7e858457035b0f5"
OTHER_SEED = "42cf526e27117b01a7e858457035b0f4"
SHAPE = (64, 64)
FEWEST = 1e-3  # a p-value below it, with the seed fixed, is a defect


def flat(expected_e: float) -> Any:
    return np.full(SHAPE, expected_e)


def test_the_public_calibration_is_what_the_configuration_says_and_no_more() -> None:
    written = document()
    assert calibration(config()).document() == {
        "wavelength_nm": written["wavelength_nm"],
        "pupil_samples": written["pupil"]["samples"],
        "obscuration": written["pupil"]["obscuration"],
        **written["detector"],
        "command_bound_nm": written["command_bound_nm"],
    }


def test_a_calibration_survives_plain_json_and_other_keys_are_refused() -> None:
    assert Calibration.from_document(SMALL.document()) == SMALL
    with pytest.raises(TypeError, match="gain"):
        Calibration.from_document({**SMALL.document(), "gain": 2})


def test_expected_electrons_are_the_photons_times_each_pixels_share() -> None:
    expected = expected_frame(DEVELOPMENT, INCIDENT_OPD_NM)
    assert np.array_equal(expected, 30_000 * DEVELOPMENT.optics.psf(INCIDENT_OPD_NM))
    doubled = expected_frame(replace(DEVELOPMENT, photons_per_exposure=60_000), INCIDENT_OPD_NM)
    assert np.array_equal(doubled, 2 * expected)


def test_some_of_the_photons_are_lost_beside_the_detector() -> None:
    assert 0.95 * 30_000 < expected_frame(DEVELOPMENT, INCIDENT_OPD_NM).sum() < 0.98 * 30_000


@pytest.mark.parametrize("expected_e", [0.02, 1.0, 5.0, 300.0])
def test_photons_have_poissons_distribution(expected_e: float) -> None:
    counts = draw_photons(flat(expected_e), SEED, 0).ravel()
    edges = np.unique(stats.poisson.ppf(np.linspace(0.02, 0.98, 12), expected_e))
    observed = np.bincount(np.searchsorted(edges, counts), minlength=edges.size + 1)
    cumulative = np.concatenate([[0], stats.poisson.cdf(edges, expected_e), [1]])
    assert stats.chisquare(observed, counts.size * np.diff(cumulative)).pvalue > FEWEST


def test_photons_of_another_mean_would_be_noticed() -> None:
    counts = draw_photons(flat(5.2), SEED, 0)
    assert abs(counts.mean() - 5.0) / np.sqrt(5.0 / counts.size) > 4


@pytest.mark.parametrize("read_noise_e", [0.5, 3.0])
def test_read_noise_is_gaussian_with_the_rms_of_the_calibration(read_noise_e: float) -> None:
    noise = draw_frame(flat(0.0), read_noise_e, SEED, 0).ravel()
    assert stats.kstest(noise, stats.norm(0, read_noise_e).cdf).pvalue > FEWEST
    assert stats.kstest(noise, stats.norm(0, 1.2 * read_noise_e).cdf).pvalue < FEWEST


def test_mean_and_variance_of_a_frame_are_m_and_m_plus_read_variance() -> None:
    mean_e, read_noise_e = 7.0, 3.0
    drawn = np.array([draw_frame(flat(mean_e), read_noise_e, SEED, i) for i in range(10)])
    variance = mean_e + read_noise_e**2
    # The fourth moment of a sum is m + 3 v^2, hence of the variance's estimate:
    spread = np.sqrt((mean_e + 2 * variance**2) / drawn.size)
    assert abs(drawn.mean() - mean_e) < 4 * np.sqrt(variance / drawn.size)
    assert abs(drawn.var() - variance) < 4 * spread


def test_a_frame_is_whole_photons_and_then_read_noise() -> None:
    counts = draw_photons(flat(7.0), SEED, 0)
    assert np.array_equal(counts, np.rint(counts))
    noise = draw_frame(flat(0.0), 3.0, SEED, 0)
    assert np.array_equal(draw_frame(flat(7.0), 3.0, SEED, 0), counts + noise)
    # Poisson of a noisy expectation would be whole, and never negative.
    assert draw_frame(flat(0.0), 3.0, SEED, 0).min() < -5
    assert not np.array_equal(counts + noise, np.rint(counts + noise))


def test_photons_and_read_noise_have_streams_of_their_own() -> None:
    noise = [draw_frame(flat(e), 3.0, SEED, 0) - draw_photons(flat(e), SEED, 0) for e in (5, 500)]
    assert np.abs(noise[0] - noise[1]).max() < 1e-12
    photons = [
        draw_frame(flat(5.0), s, SEED, 0) - draw_frame(flat(0.0), s, SEED, 0) for s in (1, 9)
    ]
    assert np.abs(photons[0] - photons[1]).max() < 1e-12
    counts = draw_photons(flat(500.0), SEED, 0)
    assert abs(np.corrcoef(counts.ravel(), noise[0].ravel())[0, 1]) < 4 / np.sqrt(counts.size)


def test_a_draw_is_philox_with_the_seed_as_key_and_stream_and_exposure_in_the_counter() -> None:
    def generator(stream: int) -> np.random.Generator:
        counter = stream << 128 | 5 << 192
        return np.random.Generator(np.random.Philox(key=int(SEED, 16), counter=counter))

    photons = generator(0).poisson(flat(7.0)).astype(float)
    noise = 3.0 * generator(1).standard_normal(SHAPE)
    assert np.array_equal(draw_frame(flat(7.0), 3.0, SEED, 5), photons + noise)


def test_a_frame_depends_on_no_other_exposure() -> None:
    expected = expected_frame(SMALL, INCIDENT_OPD_NM)
    in_order = [draw_frame(expected, 3.0, SEED, index) for index in range(6)]
    backwards = [draw_frame(expected, 3.0, SEED, index) for index in (5, 3, 1)]
    assert np.array_equal(backwards, [in_order[index] for index in (5, 3, 1)])


@pytest.mark.parametrize(("seed", "index"), [(OTHER_SEED, 0), (SEED, 1), (SEED, 2**40)])
def test_another_seed_or_another_exposure_has_another_frame(seed: str, index: int) -> None:
    first, other = draw_frame(flat(0.0), 3.0, SEED, 0), draw_frame(flat(0.0), 3.0, seed, index)
    assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(first.size)
    first, other = draw_photons(flat(50.0), SEED, 0), draw_photons(flat(50.0), seed, index)
    assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(first.size)


def test_a_frame_is_signed_float64_of_the_shape_of_the_detector() -> None:
    frame = draw_frame(expected_frame(SMALL, INCIDENT_OPD_NM), 3.0, SEED, 0)
    assert frame.shape == (20, 20)
    assert frame.dtype == np.float64
    assert frame.min() < 0


def test_the_expectation_is_quantised_before_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Recorder:
        def poisson(self, mean: Any) -> Any:
            seen.append(mean)
            return np.zeros(mean.shape, dtype=np.int64)

    monkeypatch.setattr(camera, "_generator", lambda *_: Recorder())
    expected = expected_frame(SMALL, INCIDENT_OPD_NM)
    draw_photons(expected, SEED, 0)
    # What another processor changes in the last bits must not reach the draw.
    draw_photons(expected * (1 + 1e-14), SEED, 0)
    assert np.array_equal(seen[0] * 2**20, np.rint(seen[0] * 2**20))
    assert 0 < np.abs(seen[0] - expected).max() <= EXPECTATION_QUANTUM_E / 2 == 2.0**-21
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(expected, expected * (1 + 1e-14))
