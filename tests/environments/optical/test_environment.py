"""What verification allows another runtime to change, and what it does not."""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from probebench.app.registry import default_registry
from probebench.app.rig import Rig
from probebench.app.verify import Verdict, verify_folder
from probebench.environments.optical import episode
from probebench.environments.optical.display import frame_png
from probebench.kernel.environment import Part
from tests.environments.test_conformance import CASES
from tests.rigs import RepliesInProcess, constant_rig

CASE = CASES["optical direct"]
ENVIRONMENT = default_registry()["optical"].environment


def reencoded(png: bytes) -> bytes:
    """The same picture in other bytes, as another zlib would write them."""
    with Image.open(BytesIO(png)) as image:
        image.load()
        buffer = BytesIO()
        image.save(buffer, format="PNG", compress_level=0)
    assert buffer.getvalue() != png
    return buffer.getvalue()


def repainted(png: bytes) -> bytes:
    """Another picture."""
    with Image.open(BytesIO(png)) as image:
        image.load()
        image.putpixel((0, 0), 255 - image.tobytes()[0])
        buffer = BytesIO()
        image.save(buffer, format="PNG")
    return buffer.getvalue()


def other_machine() -> Rig:
    rig = constant_rig()
    return replace(rig, runtime=lambda: {**rig.runtime(), "cpu_features": ["OTHER"]})


def verdict_with(monkeypatch: pytest.MonkeyPatch, folder: Path, rig: Rig, change: Any) -> Verdict:
    CASE.run(folder)
    monkeypatch.setattr(episode, "frame_png", lambda *given: change(frame_png(*given)))
    return verify_folder(rig, folder)


def test_a_picture_in_other_bytes_is_the_same_under_another_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict = verdict_with(monkeypatch, tmp_path / "a", other_machine(), reencoded)
    assert verdict.verified, verdict.failure
    assert any("another runtime" in seen and "OTHER" in seen for _, seen in verdict.checks)


def test_a_picture_in_other_bytes_is_refused_under_the_frozen_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict = verdict_with(monkeypatch, tmp_path / "a", constant_rig(), reencoded)
    assert verdict.failure is not None
    assert verdict.failure.artifact == "session.json"


def test_another_picture_is_refused_under_any_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdict = verdict_with(monkeypatch, tmp_path / "a", other_machine(), repainted)
    assert verdict.failure is not None


def first_message() -> Any:
    clients = RepliesInProcess(CASE.reply)
    study = CASE.study()
    body = ENVIRONMENT.open(study, bytes(32)).pending().body  # type: ignore[union-attr]
    assert clients.messages == []
    return copy.deepcopy(body)


def test_frames_are_compared_exactly() -> None:
    saved, recomputed = first_message(), first_message()
    assert ENVIRONMENT.agree(Part.MESSAGE, saved, recomputed)
    recomputed["observation"]["electrons"][3][4] += 1e-9
    assert not ENVIRONMENT.agree(Part.MESSAGE, saved, recomputed)


def test_a_picture_that_is_none_is_compared_as_text() -> None:
    saved, recomputed = first_message(), first_message()
    saved["observation"]["png_base64"] = base64.b64encode(b"no picture").decode()
    assert not ENVIRONMENT.agree(Part.MESSAGE, saved, recomputed)
    assert ENVIRONMENT.agree(Part.MESSAGE, saved, copy.deepcopy(saved))


@pytest.mark.parametrize("part", [Part.VALUE, Part.EVALUATION])
def test_derived_figures_agree_within_the_tolerance_and_not_beyond(part: Part) -> None:
    saved = {"a": [1.0, {"b": 250.0}], "n": 3, "s": "converged", "none": None}
    near = {"a": [1.0 + 1e-7, {"b": 250.0 - 1e-4}], "n": 3, "s": "converged", "none": None}
    assert ENVIRONMENT.agree(part, saved, near)
    for other in (
        {**saved, "a": [1.0, {"b": 250.1}]},
        {**saved, "n": 4},
        {**saved, "s": "stalled"},
        {**saved, "none": 0.0},
        {**saved, "a": [1.0]},
        {key: value for key, value in saved.items() if key != "n"},
    ):
        assert not ENVIRONMENT.agree(part, saved, other)


def test_the_path_of_a_start_may_differ_but_not_what_the_fit_concludes() -> None:
    saved = {"estimate_opd_nm": [1.0], "starts": [{"iterations": 7}]}
    assert ENVIRONMENT.agree(Part.VALUE, saved, {**saved, "starts": [{"iterations": 8}]})
    assert not ENVIRONMENT.agree(Part.VALUE, saved, {**saved, "estimate_opd_nm": [1.01]})
