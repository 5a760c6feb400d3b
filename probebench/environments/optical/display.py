"""A frame as a person would look at it: a palette PNG on a fixed scale."""

from __future__ import annotations

import struct
from functools import lru_cache
from io import BytesIO

import numpy as np
from PIL import Image

from probebench.environments.optical.camera import Frame

COLOURS = 256


def frame_png(electrons: Frame, photons_per_exposure: int) -> bytes:
    """Draw a frame as a PNG file of chunks IHDR, PLTE, IDAT and IEND alone.

    electrons: (rows, columns) signed electrons; row 0 is drawn at the bottom.
    photons_per_exposure: expected photons; the palette index is
        256 log1p(max(e, 0)) / log1p(photons), rounded down, within 0 to 255.
    The scale is fixed: it depends on no frame's extrema.
    """
    value = np.log1p(np.maximum(electrons, 0)) / np.log1p(photons_per_exposure)
    index = np.minimum(COLOURS * value, COLOURS - 1).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(index[::-1]))
    image.putpalette(_magma())
    with BytesIO() as file:
        image.save(file, format="PNG", compress_level=6)
        return file.getvalue()


@lru_cache(maxsize=1)
def _magma() -> bytes:
    # Imported here because it takes an eighth of a second, which a command
    # that draws nothing need not pay.
    from cmap import Colormap

    colours = Colormap("magma").lut(COLOURS)[:, :3]
    palette: bytes = np.rint(255 * colours).astype(np.uint8).tobytes()
    return palette


def png_chunks(png: bytes) -> list[bytes]:
    """The kinds of a PNG file's chunks, in order.  Raises struct.error."""
    kinds, position = [], 8
    while position < len(png):
        size, kind = struct.unpack_from(">I4s", png, position)
        kinds.append(kind)
        position += size + 12
    return kinds
