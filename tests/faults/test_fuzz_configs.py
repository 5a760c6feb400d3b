"""Any bytes for a configuration: one that a session can begin with, or one sentence."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probebench.app.machine import read_config
from probebench.app.registry import entry_of
from probebench.kernel.canonical import Json, encode
from probebench.kernel.environment import Environment
from probebench.kernel.errors import ConfigError
from probebench.kernel.study import Study
from tests.environments.test_conformance import CASES
from tests.faults.fuzz import changed, damaged, is_sentence
from tests.faults.share import Count
from tests.rigs import NONCE, registry

CONFIGS = int(os.environ.get("PROBEBENCH_FUZZ", "6000")) // 20
REGISTRY = registry()


def verdict(path: Path, data: bytes) -> str:
    """What comes of a file: a session that begins, or who is told what."""
    path.write_bytes(data)
    try:
        config = read_config(path)
        environment = entry_of(REGISTRY, config).environment
    except ConfigError as error:
        said = str(error)
    else:
        study = Study(config, {}, {})
        environment.budget(study)
        environment.open(study, NONCE).pending()
        return "begun"
    assert is_sentence(said, most=2000), said
    return "refused"


def hostile(chance: Random, config: Json) -> bytes:
    if chance.random() < 0.3:
        return damaged(chance, encode(config))
    return encode(changed(chance, config))


def fuzz_configs(config: Json, path: Path, count: int, seed: int) -> Counter[str]:
    return Counter(verdict(path, hostile(Random(f"{seed}/{n}"), config)) for n in range(count))


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_configuration_begins_a_session_or_is_refused_in_a_sentence(
    name: str, memory_path: Path, count: Count
) -> None:
    tries = CONFIGS // len(CASES) + 1
    verdicts = fuzz_configs(CASES[name].config, memory_path / "config.json", tries, seed=1)
    count("fuzzed configurations", tries, name, str(dict(verdicts)))
    assert verdicts["refused"]


def test_any_bytes_at_all_are_refused_in_a_sentence(tmp_path: Path) -> None:
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=100))
    def check(data: bytes) -> None:
        assert verdict(tmp_path / "config.json", data) == "refused"

    check()


# -- a broken reader, which the checks above must catch ----------------------------------------


def test_a_configuration_that_is_not_checked_is_caught(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = CASES["optical direct"].environment()
    monkeypatch.setattr(type(environment), "configure", Environment.configure)
    with pytest.raises((ConfigError, KeyError, TypeError, AttributeError)):
        fuzz_configs(CASES["optical direct"].config, memory_path / "config.json", 300, seed=1)
