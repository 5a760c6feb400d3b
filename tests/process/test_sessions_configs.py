"""Bad configurations: one sentence that names the field, and nothing hidden."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.process.drivers import (
    driver,
    evaluator,
    play,
    run,
    run_forked,
    scripted,
    write_config,
)

BAD_FIELDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "missing field": ({"wavelength_nm": ...}, ["wavelength_nm"]),
    "missing nested field": ({"fixture__detector_seed": ...}, ["fixture.detector_seed"]),
    "unknown field": ({"colour": 1}, ["colour"]),
    "unknown nested field": ({"detector__gain": 1}, ["detector.gain"]),
    "wrong type": ({"budget__exposures": "6"}, ["budget.exposures"]),
    "boolean for a number": ({"wavelength_nm": True}, ["wavelength_nm"]),
    "null": ({"pupil": None}, ["pupil"]),
    "out of range": ({"pupil__obscuration": 0.99}, ["pupil.obscuration"]),
    "negative": ({"detector__read_noise_e": -1.0}, ["detector.read_noise_e"]),
    "not labelled development": ({"purpose": "reserved"}, ["purpose", "development"]),
    "not labelled": ({"purpose": ...}, ["purpose"]),
    "unknown environment": ({"environment": "sonar"}, ["environment"]),
    "no environment": ({"environment": ...}, ["environment"]),
    "short seed": ({"fixture__wavefront_seed": "00"}, ["fixture.wavefront_seed"]),
    "two at once": ({"track": "free", "budget__requests": 0}, ["track", "budget.requests"]),
}
BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{wavelength: 850}",
    "a list": b"[]",
    "a number": b"850",
    "not UTF-8": b'{"name": "\xff"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a duplicate key": b'{"name": "a", "name": "b"}',
    "NaN": b'{"wavelength_nm": NaN}',
    "deep": b"[" * 10_000,
    "cut": b'{"name": "a"',
}


def require_one_sentence(ran: subprocess.CompletedProcess[bytes]) -> str:
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == b""
    text = ran.stderr.decode()
    assert text.count("\n") == 1, text
    assert text.startswith("probebench: ")
    return text


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_a_bad_configuration_is_refused_naming_the_field(case: str, tmp_path: Path) -> None:
    changes, named = BAD_FIELDS[case]
    config = write_config(tmp_path / "secret-name-of-the-file.json", name="secret name", **changes)
    text = require_one_sentence(
        run_forked("session", "--config", config, "--output", tmp_path / "a")
    )
    assert all(path in text for path in named), text
    # The client may read standard error where it is at the other end of the streams.
    assert "secret" not in text
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_configuration_is_refused(case: str, tmp_path: Path) -> None:
    config = tmp_path / "secret-name.json"
    config.write_bytes(BAD_FILES[case])
    text = require_one_sentence(
        run_forked("session", "--config", config, "--output", tmp_path / "a")
    )
    assert "secret" not in text


def test_a_folder_a_missing_and_an_unreadable_file_are_refused(tmp_path: Path) -> None:
    # The last is a file whose first byte nobody can read, root included.
    places = (tmp_path, tmp_path / "missing.json", tmp_path / ("x" * 300), Path("/proc/self/mem"))
    for config in places:
        text = require_one_sentence(run("session", "--config", config, "--output", tmp_path / "a"))
        assert "--config" in text
        assert config.name not in text


def test_over_our_own_streams_standard_error_tells_nothing_hidden(tmp_path: Path) -> None:
    config = write_config(tmp_path / "secret-file.json", name="secret name")
    with driver("session", "--config", config, "--output", tmp_path / "a") as speaker:
        play(speaker, scripted)
        _, _, errors = speaker.finish()
    text = errors.decode()
    assert "secret" not in text
    assert "WFE" not in text
    judged = evaluator(tmp_path / "a")["evaluation"]
    for figure in ("residual_wfe_nm_rms", "zero_command_wfe_nm_rms", "strehl"):
        assert f"{judged[figure]:.2f}" not in text
    assert judged["realised_photons"]
    assert json.loads((tmp_path / "a/manifest.json").read_bytes())["head_sha256"] in text
