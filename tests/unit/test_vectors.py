"""Golden transcripts: whole sessions come out the same everywhere."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probebench.app.registry import default_registry
from probebench.host import runtime
from probebench.kernel.canonical import decode
from probebench.kernel.environment import Part

REPOSITORY = Path(__file__).parents[2]
VECTORS = REPOSITORY / "tests/vectors"
TOYS = ["thermometer", "breeder", "breeder_with_inner_session"]
OPTICAL = "optical_assisted"
ENVIRONMENT = default_registry()["optical"].environment

# Kernels by which OpenBLAS rounds differently, and what of a processor each needs:
# on one that lacks it OpenBLAS would die of an instruction that is not there, so
# its own kernel takes that place and the comparison is made all the same.
KERNEL = "OPENBLAS_CORETYPE"
NEEDS = {"Nehalem": "SSE42", "Sandybridge": "AVX", "Haswell": "X86_V3", "SkylakeX": "X86_V4"}
SURROUNDINGS: dict[str, dict[str, str]] = {
    "hash seed 1, the C locale, the Nehalem kernel": {
        "PYTHONHASHSEED": "1",
        "LC_ALL": "C",
        "LANG": "C",
        KERNEL: "Nehalem",
    },
    "hash seed 2, UTF-8, another time zone, the Sandybridge kernel, two threads": {
        "PYTHONHASHSEED": "2",
        "LC_ALL": "C.UTF-8",
        "TZ": "Asia/Kathmandu",
        KERNEL: "Sandybridge",
        "OPENBLAS_NUM_THREADS": "2",
    },
    "the Haswell kernel": {KERNEL: "Haswell"},
    "the SkylakeX kernel": {KERNEL: "SkylakeX"},
}


@pytest.fixture(scope="module", params=SURROUNDINGS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transcripts as a process in other surroundings makes them."""
    folder = tmp_path_factory.mktemp("made")
    script = REPOSITORY / "scripts/regenerate_vectors.py"
    subprocess.run(
        [sys.executable, script, "--output", folder],
        env={**os.environ, **runnable(SURROUNDINGS[request.param])},
        cwd=folder,
        check=True,
    )
    return folder


def runnable(surroundings: dict[str, str]) -> dict[str, str]:
    needed = NEEDS.get(surroundings.get(KERNEL, ""))
    if needed is None or needed in runtime.capture()["cpu_features"]:
        return surroundings
    return {name: value for name, value in surroundings.items() if name != KERNEL}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels named are of x86-64")
def test_the_surroundings_choose_the_kernel_that_they_name() -> None:
    program = "import numpy, threadpoolctl as t; print(t.threadpool_info()[0]['architecture'])"
    shown = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem"},
        check=True,
        capture_output=True,
    )
    assert shown.stdout == b"Nehalem\n"


@pytest.mark.parametrize("name", TOYS)
def test_toy_sessions_are_the_same_bytewise(name: str, made: Path) -> None:
    assert (made / f"{name}.json").read_bytes() == (VECTORS / f"{name}.json").read_bytes()


def test_optical_frames_are_the_same_exactly(made: Path) -> None:
    ours, golden = (decode((folder / f"{OPTICAL}.json").read_bytes()) for folder in (made, VECTORS))
    assert len(frames(golden)) > 2
    assert frames(ours) == frames(golden)


def test_optical_figures_are_the_same_within_the_stated_tolerance(made: Path) -> None:
    ours, golden = (decode((folder / f"{OPTICAL}.json").read_bytes()) for folder in (made, VECTORS))
    require_same_derived(ours, golden)


def require_same_derived(ours: Any, golden: Any) -> None:
    assert ours["records"].keys() == golden["records"].keys()
    for name, record in golden["records"].items():
        other = ours["records"][name]
        if record.get("value") is not None:
            saved, recomputed = record["value"]["value"], other["value"]["value"]
            assert ENVIRONMENT.agree(Part.VALUE, saved, recomputed)
    evaluation, other = golden["evaluator"]["evaluation"], ours["evaluator"]["evaluation"]
    # The final command is an estimate, so its own figures are as sharp as that.
    assert ENVIRONMENT.agree(Part.VALUE, evaluation, other)


def frames(golden: Any) -> list[Any]:
    messages = [record.get("message") for record in golden["records"].values()]
    observed = [m.get("observation") or m["last_acquired_observation"] for m in messages if m]
    return [observation["electrons"] for observation in observed]


def test_the_comparison_notices_another_frame_and_another_estimate() -> None:
    golden = decode((VECTORS / f"{OPTICAL}.json").read_bytes())
    other = decode((VECTORS / f"{OPTICAL}.json").read_bytes())
    frames(other)[0][3][3] += 1e-9
    assert frames(other) != frames(golden)
    values = [r["value"] for r in other["records"].values() if r.get("value") is not None]
    values[0]["value"]["estimate_opd_nm"][2] += 1e-3
    with pytest.raises(AssertionError):
        require_same_derived(other, golden)
