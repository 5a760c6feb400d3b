"""Everything outside the package that the bits of a result depend on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from probebench.kernel.canonical import Json

PACKAGES = ("probebench", "numpy", "scipy", "pillow", "orjson", "pydantic", "cmap")
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "BLIS_NUM_THREADS",
)
BLAS_FIELDS = ("version", "architecture", "threading_layer", "num_threads")
MAX_SHOWN_CHARACTERS = 80
VERSIONS = "versions"  # its keys are names that stand for themselves


def use_one_thread() -> None:
    """Have BLAS compute in one thread: sums in parts round differently.

    Covers libraries that are loaded already and, through the environment,
    those that are loaded later.
    """
    import threadpoolctl  # type: ignore[import-untyped]

    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
    threadpoolctl.threadpool_limits(1)


def capture() -> dict[str, Json]:
    """Versions, machine, BLAS and processor features, as they are in use now.

    Call it after ``use_one_thread``: the number of threads is part of it.
    Only NumPy's own BLAS is listed; SciPy's is fixed by SciPy's version.
    """
    import numpy as np  # noqa: F401 - loads the BLAS that is to be captured

    return {
        "python": {
            "implementation": platform.python_implementation(),
            "version": platform.python_version(),
        },
        "platform": {
            "system": platform.system(),
            "machine": platform.machine(),
            "byte_order": sys.byteorder,
            "libc": " ".join(platform.libc_ver()),
        },
        VERSIONS: versions(PACKAGES),
        "blas": _blas(),
        "cpu_features": _cpu_features(),
    }


def versions(packages: Iterable[str]) -> dict[str, Json]:
    """The installed version of each distribution."""
    return {name: _version(name) for name in packages}


@lru_cache
def _version(package: str) -> str:
    # Read once a process: what is imported does not change, and reading takes a
    # fifth of the time of a short verification.
    return metadata.version(package)


def capture_display() -> dict[str, Json]:
    """What the bytes of a PNG file depend on: Pillow, zlib and the colormaps."""
    from PIL import features

    return {
        VERSIONS: versions(("pillow", "cmap")),
        "zlib": {
            "version": features.version("zlib"),
            "zlib_ng_version": features.version_feature("zlib_ng"),
        },
    }


def differences(frozen: Mapping[str, Json], current: Mapping[str, Json]) -> list[str]:
    """One phrase for each difference: "numpy 2.4.6 is now 2.4.7"."""
    return list(_differences(frozen, current, ""))


def _differences(frozen: Json, current: Json, label: str) -> Iterator[str]:
    if isinstance(frozen, Mapping) and isinstance(current, Mapping):
        for key in sorted({*frozen, *current}):
            inner = f"{label} {_words(key)}".strip() if key != VERSIONS else label
            yield from _entry_differences(frozen, current, key, inner)
    elif isinstance(frozen, list) and isinstance(current, list):
        yield from _list_differences(frozen, current, label)
    elif frozen != current or type(frozen) is not type(current):
        yield f"{label} {_shown(frozen)} is now {_shown(current)}"


def _entry_differences(
    frozen: Mapping[str, Json], current: Mapping[str, Json], key: str, label: str
) -> Iterator[str]:
    if key not in current:
        yield f"{label or _words(key)} {_shown(frozen[key])} is gone"
    elif key not in frozen:
        yield f"{label or _words(key)} {_shown(current[key])} is new"
    else:
        yield from _differences(frozen[key], current[key], label)


def _list_differences(frozen: list[Json], current: list[Json], label: str) -> Iterator[str]:
    lost = [item for item in frozen if item not in current]
    gained = [item for item in current if item not in frozen]
    if lost:
        yield f"{label} {_shown(lost)} are gone"
    if gained:
        yield f"{label} {_shown(gained)} are new"
    if frozen != current and not (lost or gained):
        yield f"{label} are in another order"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _shown(value: Json) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def _blas() -> dict[str, Json]:
    import numpy as np
    import threadpoolctl

    loaded = [found for found in threadpoolctl.threadpool_info() if found["user_api"] == "blas"]
    bundle = Path(np.__file__).parent.parent / "numpy.libs"
    bundled = [found for found in loaded if Path(found["filepath"]).is_relative_to(bundle)]
    described: dict[str, Json] = {}
    # A system library is not in NumPy's folder; then all that is loaded counts.
    for found in bundled or loaded:
        name, number = found["internal_api"], len(described) + 1
        key = name if name not in described else f"{name}_{number}"
        described[key] = {field: found.get(field) for field in BLAS_FIELDS}
    return described


def _cpu_features() -> list[str]:
    # What numpy.show_runtime prints; there is no public way to read it.
    from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]
        __cpu_features__,
    )

    return sorted(name for name, found in __cpu_features__.items() if found)
