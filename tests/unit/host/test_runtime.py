"""The runtime: what is captured, and how differences are said."""

from __future__ import annotations

import copy
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

from probebench.host import runtime
from probebench.kernel.canonical import decode, encode

CAPTURE = "from probebench.host import runtime as r; import sys; from probebench.kernel.canonical \
import encode; r.use_one_thread(); sys.stdout.buffer.write(encode(r.capture()))"


def captured(program: str = CAPTURE) -> dict[str, Any]:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    document: dict[str, Any] = decode(ran.stdout)
    return document


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    return captured()


def test_it_holds_versions_blas_threads_and_features(here: dict[str, Any]) -> None:
    assert here["versions"]["numpy"] == metadata.version("numpy")
    assert set(here["versions"]) == set(runtime.PACKAGES)
    assert {blas["num_threads"] for blas in here["blas"].values()} == {1}
    assert here["cpu_features"] == sorted(here["cpu_features"]) != []
    assert here["platform"]["byte_order"] == sys.byteorder


def test_scipy_does_not_change_it(here: dict[str, Any]) -> None:
    assert captured("import scipy.linalg;" + CAPTURE) == here
    assert (
        captured(CAPTURE.replace("r.use_one_thread()", "r.use_one_thread(); import scipy.linalg"))
        == here
    )


def test_it_does_not_import_scipy() -> None:
    program = "import sys; from probebench.host import runtime as r; r.capture(); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_display_names_its_compressor_and_colours() -> None:
    display = runtime.capture_display()
    assert display["versions"] == {name: metadata.version(name) for name in ("pillow", "cmap")}
    assert display["zlib"]["version"]
    encode(display)


def test_the_same_runtime_has_no_differences(here: dict[str, Any]) -> None:
    assert runtime.differences(here, copy.deepcopy(here)) == []


def test_each_difference_is_one_short_phrase(here: dict[str, Any]) -> None:
    now = copy.deepcopy(here)
    frozen = copy.deepcopy(here)
    frozen["versions"]["numpy"], now["versions"]["numpy"] = "2.4.6", "2.4.7"
    frozen["python"]["version"], now["python"]["version"] = "3.11.7", "3.12.0"
    frozen["blas"], now["blas"] = {"a": {"num_threads": 1}}, {"a": {"num_threads": 2}}
    frozen["cpu_features"], now["cpu_features"] = ["AVX", "SSE"], ["SSE", "VSX"]
    del now["versions"]["scipy"]
    now["gpu"] = "none"
    version = here["versions"]["scipy"]
    assert runtime.differences(frozen, now) == [
        "blas a num threads 1 is now 2",
        "cpu features AVX are gone",
        "cpu features VSX are new",
        "gpu none is new",
        "python version 3.11.7 is now 3.12.0",
        "numpy 2.4.6 is now 2.4.7",
        f"scipy {version} is gone",
    ]


def test_a_value_of_another_type_differs() -> None:
    assert runtime.differences({"a": 1}, {"a": True}) == ["a 1 is now True"]
    assert runtime.differences({"a": ["x", "y"]}, {"a": ["y", "x"]}) == ["a are in another order"]


def test_a_huge_value_makes_a_short_phrase() -> None:
    (phrase,) = runtime.differences({"a": "x" * 9999}, {"a": 1})
    assert len(phrase) < 120
