"""Configurations: every faulty field is named by its path."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from probebench.environments.optical import config as configuration
from probebench.environments.optical.camera import calibration
from probebench.environments.optical.starts import COEFFICIENT_BOUND_NM, starts_opd_nm
from probebench.kernel.errors import ConfigError, ExitCode
from tests.environments.optical.scenes import document


def changed(path: str, value: Any) -> dict[str, Any]:
    """A valid configuration with one value replaced, or a field added."""
    written = document()
    *way, last = path.split(".")
    holder: Any = written
    for name in way:
        holder = holder[name]
    holder[last] = value
    return written


def without(path: str) -> dict[str, Any]:
    written = document()
    *way, last = path.split(".")
    holder: Any = written
    for name in way:
        holder = holder[name]
    del holder[last]
    return written


def paths(value: Any, prefix: str = "") -> list[str]:
    """Every field, objects and leaves."""
    if not isinstance(value, dict):
        return []
    return [
        found
        for name, item in value.items()
        for found in (prefix + name, *paths(item, f"{prefix}{name}."))
    ]


def sentence(written: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        configuration.parse(written)
    assert raised.value.exit_code == ExitCode.USAGE
    told = str(raised.value)
    assert told.startswith("the configuration is not valid: ")
    assert "\n" not in told
    return told


@pytest.mark.parametrize("name", sorted(p.name for p in Path("configs").glob("agent_*.json")))
def test_the_configurations_of_the_repository_are_valid(repository: Path, name: str) -> None:
    configuration.parse(json.loads((repository / "configs" / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", paths(document()))
def test_a_missing_field_is_named(path: str) -> None:
    assert f"{path} is missing" in sentence(without(path))


@pytest.mark.parametrize("path", ["photons", "pupil.shape", "detector.gain", "fixture.modes"])
def test_an_unknown_field_is_named(path: str) -> None:
    assert f"{path} is unknown" in sentence(changed(path, 1))


@pytest.mark.parametrize("path", [p for p in paths(document()) if "." in p or p != "name"])
def test_a_value_of_another_type_is_named(path: str) -> None:
    values: list[Any] = [None, True, "12"]
    for value in values:
        assert f"{path}: " in sentence(changed(path, value))


OUT_OF_RANGE: list[tuple[str, Any]] = [
    ("environment", "oscillator"),
    ("protocol", "probebench.agent.v2"),
    ("track", "assisted"),
    ("name", ""),
    ("name", "x" * 201),
    ("wavelength_nm", 299.0),
    ("wavelength_nm", 4001.0),
    ("pupil.samples", 15),
    ("pupil.samples", 257),
    ("pupil.samples", 64.5),
    ("pupil.obscuration", -0.1),
    ("pupil.obscuration", 0.61),
    ("detector.pixels", 7),
    ("detector.pixels", 129),
    ("detector.samples_per_lambda_over_d", 0.9),
    ("detector.samples_per_lambda_over_d", 8.1),
    ("detector.photons_per_exposure", 99),
    ("detector.photons_per_exposure", 10**9 + 1),
    ("detector.read_noise_e", 0.0),
    ("detector.read_noise_e", 101.0),
    ("command_bound_nm", 0.0),
    ("command_bound_nm", 501.0),
    ("budget.exposures", 0),
    ("budget.estimates", -1),
    ("budget.requests", 0),
    ("input_deadline_s", 0.0),
    ("fixture.wavefront_seed", "42"),
    ("fixture.wavefront_seed", "42CF526E27117B01A7E858457035B0F5"),
    ("fixture.detector_seed", 42),
    ("fixture.incident_rms_nm", [150.0, 60.0]),
    ("fixture.incident_rms_nm", [60.0, 100.0, 150.0]),
]


@pytest.mark.parametrize(("path", "value"), OUT_OF_RANGE)
def test_a_value_out_of_its_range_is_named(path: str, value: Any) -> None:
    assert f"{path}: " in sentence(changed(path, value))


def test_an_end_of_a_range_is_named_with_its_place() -> None:
    path = "fixture.incident_rms_nm"
    assert f"{path}.0: " in sentence(changed(path, [0.0, 150.0]))
    assert f"{path}.1 is missing" in sentence(changed(path, [60.0]))


def test_only_development_configurations_are_run() -> None:
    told = sentence(changed("purpose", "evaluation"))
    assert "purpose: only development configurations are run" in told
    assert "'evaluation'" in told


def test_all_faults_are_told_in_one_sentence() -> None:
    written = changed("pupil.samples", 3)
    written["gain"] = 2
    del written["fixture"]["detector_seed"]
    told = sentence(written)
    for part in ("pupil.samples: ", "gain is unknown", "fixture.detector_seed is missing"):
        assert part in told


@pytest.mark.parametrize("value", [[], 3, "text", None])
def test_a_document_that_is_no_object_is_said_to_be_none(value: Any) -> None:
    assert "input should be an object" in sentence(value)


# -- fields that must fit each other --------------------------------------------------


def test_a_detector_larger_than_a_period_of_the_image_is_refused() -> None:
    written = changed("pupil.samples", 16)
    written["detector"] |= {"pixels": 32, "samples_per_lambda_over_d": 2.0}
    configuration.parse(written)
    written["detector"]["pixels"] = 33
    assert "detector: pixels (33) must not exceed" in sentence(written)


def test_the_direct_track_has_no_estimates() -> None:
    written = changed("track", "direct_action")
    assert "budget: estimates must be 0 in the direct_action track" in sentence(written)
    written["budget"]["estimates"] = 0
    configuration.parse(written)


def test_a_wavefront_that_no_command_could_correct_is_refused() -> None:
    told = sentence(changed("command_bound_nm", 149.0))
    assert "fixture.incident_rms_nm reaches" in told
    assert "beyond command_bound_nm" in told
    configuration.parse(changed("command_bound_nm", 150.0))


def test_a_fault_in_one_field_hides_no_check_of_another() -> None:
    written = changed("pupil", {"samples": 3, "obscuration": 0.2})
    written["track"] = "direct_action"
    told = sentence(written)
    assert "pupil.samples: " in told
    assert "budget: estimates must be 0" in told


@pytest.mark.parametrize("wavelength_nm", [300.0, 4000.0])
def test_the_starts_stay_within_the_bound_at_every_wavelength(wavelength_nm: float) -> None:
    camera = calibration(configuration.parse(changed("wavelength_nm", wavelength_nm)))
    assert abs(starts_opd_nm(camera)).max() < COEFFICIENT_BOUND_NM


# -- fresh ones -----------------------------------------------------------------------


@pytest.mark.parametrize("track", configuration.TRACKS)
@pytest.mark.parametrize(
    ("preset", "samples", "pixels"), [("default", 64, 32), ("stress", 128, 64)]
)
def test_a_fresh_configuration_is_valid_and_has_fresh_seeds(
    track: str, preset: str, samples: int, pixels: int
) -> None:
    first, second = (
        configuration.fresh_config(secrets.token_bytes, track, "fresh", preset) for _ in range(2)
    )
    seeds = {c["fixture"][k] for c in (first, second) for k in ("wavefront_seed", "detector_seed")}
    assert len(seeds) == 4
    parsed = configuration.parse(first)
    assert (parsed.track, parsed.pupil.samples, parsed.detector.pixels) == (track, samples, pixels)


@pytest.mark.parametrize(
    ("track", "preset", "told"),
    [
        (
            "assisted",
            "default",
            "there is no track 'assisted'; use one of tool_assisted, direct_action",
        ),
        ("tool_assisted", "hard", "there is no optical preset 'hard'; use one of default, stress"),
    ],
)
def test_an_unknown_track_or_preset_is_named_with_those_that_exist(
    track: str, preset: str, told: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        configuration.fresh_config(secrets.token_bytes, track, "fresh", preset)
    assert str(raised.value) == told
