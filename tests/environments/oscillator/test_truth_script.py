"""The script that computes exact truth stops and goes on, and mixes no methods."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from probebench.environments.oscillator import truth_table
from probebench.environments.oscillator.evaluator import truth_counts
from probebench.environments.oscillator.method import METHOD

KEYS = ("001200210", "001100020", "002200220")


@pytest.fixture
def script(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = repository / "scripts" / "oscillator_truth_table.py"
    spec = importlib.util.spec_from_file_location("oscillator_truth_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "all_keys", lambda: KEYS)
    return module


def test_an_interrupted_table_goes_on_and_is_the_same(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "folder" / "truth.jsonl"
    counts = script.completed(output, workers=2)
    assert counts == {key: truth_counts()[key] for key in KEYS}
    whole = output.read_bytes()
    # Killed in the middle of the last line.
    output.write_bytes(whole[:-700])
    judged: list[str] = []
    usual = script.verdicts

    def noted(key: str) -> tuple[str, str]:
        judged.append(key)
        found: tuple[str, str] = usual(key)
        return found

    monkeypatch.setattr(script, "verdicts", noted)
    assert script.completed(output, workers=1) == counts
    assert judged == [KEYS[-1]]
    assert output.read_bytes() == whole


def test_verdicts_of_another_method_are_not_mixed_in(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "truth.jsonl"
    monkeypatch.setattr(script, "METHOD", METHOD._replace(step=0.125))
    script.saved(output)
    monkeypatch.setattr(script, "METHOD", METHOD)
    with pytest.raises(SystemExit, match="another method"):
        script.completed(output, workers=1)


def test_the_compact_table_is_a_module_that_gives_the_counts_back(script: ModuleType) -> None:
    scope: dict[str, str] = {}
    exec(script.page({"001200210": 792, "001100020": 5}), scope)
    assert scope["COUNTS"] == "318005"
    assert scope["VECTORS_SHA256"] == truth_table.VECTORS_SHA256
    listed = b"001200210 792\n001100020 5\n"
    assert scope["TABLE_SHA256"] == hashlib.sha256(listed).hexdigest()
