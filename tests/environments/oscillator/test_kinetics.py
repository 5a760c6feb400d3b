"""Frozen kinetic vectors: distributions, streams and their independence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from probebench.environments.oscillator.kinetics import (
    VectorSet,
    kinetic_vectors,
    vectors_sha256,
)
from probebench.environments.oscillator.sobol import sobol_points

SEED = "0123456789abcdef" * 2
TRAIN = kinetic_vectors(SEED, VectorSet.TRAIN, 1024)


@pytest.mark.parametrize(
    ("columns", "low", "high"),
    [
        (slice(0, 6), 10**-0.5, 10**0.5),
        (slice(6, 9), 1e-3, 1e-1),
        (slice(9, 18), 1e-2, 1.0),
    ],
)
def test_rates_leaks_and_thresholds_are_log_uniform_in_their_ranges(
    columns: slice, low: float, high: float
) -> None:
    values = TRAIN[:, columns]
    assert low < values.min() < 1.01 * low
    assert 0.99 * high < values.max() < high
    spread = (np.log(np.sort(values, axis=0)) - np.log(low)) / np.log(high / low)
    # A Sobol set has one point in each of 1024 equal parts of every column.
    ranks = (np.arange(1024) + 0.5) / 1024
    assert np.abs(spread - ranks[:, np.newaxis]).max() < 1 / 1024


def test_exponents_are_1_to_4_and_equally_frequent() -> None:
    for column in TRAIN[:, 18:].T:
        assert np.unique(column, return_counts=True)[1].tolist() == [256] * 4
        assert set(column) == {1.0, 2.0, 3.0, 4.0}


def test_the_points_are_spread_more_evenly_than_random_ones() -> None:
    unit = np.log10(TRAIN[:, :6]) + 0.5
    random = np.random.Generator(np.random.Philox(key=3)).random(unit.shape)
    assert qmc.discrepancy(unit) < qmc.discrepancy(random) / 5


def test_the_three_sets_share_no_value_of_a_rate() -> None:
    sets = [kinetic_vectors(SEED, one, 1024) for one in VectorSet]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        shared = set(map(tuple, sets[first])) & set(map(tuple, sets[second]))
        assert shared == set()
        assert not np.any(sets[first][:, 0] == sets[second][:, 0])


def test_another_seed_gives_other_vectors() -> None:
    # One bit of 128, in the half that a 64-bit seed would not have.
    other = f"{int(SEED, 16) ^ 1 << 127:032x}"
    assert not np.any(TRAIN[:, 0] == kinetic_vectors(other, VectorSet.TRAIN, 1024)[:, 0])


def test_a_smaller_budget_is_the_beginning_of_a_larger_one() -> None:
    assert np.array_equal(kinetic_vectors(SEED, VectorSet.TRAIN, 300), TRAIN[:300])


def test_the_vectors_are_frozen() -> None:
    assert vectors_sha256(TRAIN[:64]) == (
        "25fe5293a22b8bffe6719d6bd516c4ee5d0aabaaf294ec3595eb84a4ed442a5f"
    )
    with pytest.raises(ValueError, match="read-only"):
        TRAIN[0, 0] = 1.0


def test_an_error_in_the_last_bit_of_a_power_changes_no_vector() -> None:
    rates = TRAIN[:, :18]
    for neighbour in (np.nextafter(rates, 0.0), np.nextafter(rates, 9.0)):
        assert np.array_equal(neighbour.astype(np.float32), rates.astype(np.float32))
    assert np.array_equal(rates, rates.astype(np.float32))


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 4096])
def test_the_points_are_those_of_scipy(count: int) -> None:
    exponent = (count - 1).bit_length()
    expected = qmc.Sobol(27, scramble=False, bits=32).random_base2(exponent)[:count]
    assert np.array_equal(sobol_points(count) / 2.0**32, expected)


def test_scrambling_keeps_every_part_of_every_column_filled() -> None:
    for vector_set in VectorSet:
        exponents = kinetic_vectors(SEED, vector_set, 64)[:, 18:]
        assert all(
            np.bincount(column.astype(int)).tolist() == [0, 16, 16, 16, 16]
            for column in exponents.T
        )


@pytest.mark.parametrize("count", [0, -1, 2**20 + 1])
def test_a_number_of_vectors_beyond_the_set_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="number of vectors"):
        kinetic_vectors(SEED, VectorSet.TRAIN, count)
