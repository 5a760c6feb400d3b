"""A seed of few bits falls to one image: the reason why they have 128."""

from __future__ import annotations

import numpy as np

from probebench.environments.optical.config import OpticalConfig, parse
from probebench.environments.optical.fixture import Instrument
from tests.environments.optical.protocol_session import small_config

FEW_BITS = 10
ZERO = [0.0] * 6


def with_wavefront_seed(number: int) -> OpticalConfig:
    config = small_config()
    fixture = {**config["fixture"], "wavefront_seed": f"{number:032x}"}
    return parse({**config, "fixture": fixture})


def test_a_wavefront_seed_of_ten_bits_falls_to_one_image() -> None:
    hidden = 0x2A7
    image_e = Instrument(with_wavefront_seed(hidden)).expose(ZERO, 0)

    def misfit(guess: int) -> float:
        # An agent knows the camera, and needs no seed of the detector.
        expected_e = Instrument(with_wavefront_seed(guess)).expected(ZERO)
        return float(np.sum((image_e - expected_e) ** 2 / (expected_e + 1.0)))

    assert min(range(2**FEW_BITS), key=misfit) == hidden
