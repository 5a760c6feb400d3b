"""The picture of a frame."""

from __future__ import annotations

import math
import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from cmap import Colormap
from PIL import Image

from probebench.environments.optical.camera import Frame
from probebench.environments.optical.display import frame_png
from tests.environments.optical.scenes import (
    COMMANDS_OPD_NM,
    DEVELOPMENT,
    INCIDENT_OPD_NM,
    frames,
)

PHOTONS = 30_000


def chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    """Names and contents, every checksum checked."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        name, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", png[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(name + content)
        found.append((name, content))
        at += 12 + length
    return found


def drawn(electrons: Frame) -> Frame:
    """Palette indices as drawn, first row on top."""
    with Image.open(BytesIO(frame_png(electrons, PHOTONS))) as image:
        assert image.mode == "P"
        indices: Frame = np.array(image, dtype=np.float64)
        return indices


def one(electrons: float) -> int:
    """Palette index of one pixel."""
    return int(drawn(np.full((8, 8), electrons))[0, 0])


@pytest.fixture(scope="module")
def frame() -> Frame:
    first: Frame = frames(DEVELOPMENT, INCIDENT_OPD_NM, COMMANDS_OPD_NM, 1)[0]
    return first


def test_the_file_holds_header_palette_pixels_and_end_alone(frame: Frame) -> None:
    found = chunks(frame_png(frame, PHOTONS))
    assert [name for name, _ in found] == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colour = struct.unpack(">IIBB", found[0][1][:10])
    assert (width, height, depth, colour) == (32, 32, 8, 3)


def test_the_palette_is_magma(frame: Frame) -> None:
    palette = dict(chunks(frame_png(frame, PHOTONS)))[b"PLTE"]
    magma = [tuple(Colormap("magma")(i / 255).rgba8[:3]) for i in range(256)]
    assert [tuple(palette[3 * i : 3 * i + 3]) for i in range(256)] == magma
    assert palette[:3] == bytes([0, 0, 4])
    assert palette[-3:] == bytes([252, 253, 191])


def test_the_index_of_every_pixel_is_the_stated_formula(frame: Frame) -> None:
    indices = drawn(frame)[::-1]
    for position in np.ndindex(frame.shape):
        value = math.log1p(max(float(frame[position]), 0.0)) / math.log1p(PHOTONS)
        assert indices[position] == min(math.floor(256 * value), 255)
    assert len(np.unique(indices)) > 100


def test_the_limits_are_0_and_the_expected_photons() -> None:
    assert one(0.0) == one(-0.5) == one(-1e300) == 0
    assert one(PHOTONS) == one(1.0001 * PHOTONS) == one(1e300) == 255
    assert 0 < one(1.0) < one(100.0) < one(0.9 * PHOTONS) == 253


def test_row_0_of_a_frame_is_drawn_at_the_bottom_and_column_0_at_the_left() -> None:
    electrons = np.zeros((8, 8))
    electrons[0, 1] = PHOTONS
    assert np.argwhere(drawn(electrons)).tolist() == [[7, 1]]


def test_no_extreme_of_a_frame_changes_how_its_other_pixels_are_drawn(frame: Frame) -> None:
    brighter = frame.copy()
    brighter[3, 4], brighter[5, 6] = 3.0 * PHOTONS, -500.0
    changed = np.argwhere(drawn(frame) != drawn(brighter))
    assert changed.tolist() == [[26, 6], [28, 4]]


def test_the_same_frame_has_the_same_bytes_and_is_left_alone(frame: Frame) -> None:
    before = frame.copy()
    assert frame_png(frame, PHOTONS) == frame_png(frame.copy(), PHOTONS)
    assert np.array_equal(frame, before)
