"""What was once read wrongly is read rightly from then on.

Each line of tests/vectors/corpus.jsonl is a fault that was found: the reader,
the bytes (as the characters U+0000 to U+00FF), what they must lead to, and
what they led to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probebench.app.machine import read_config
from probebench.app.registry import entry_of
from probebench.kernel.errors import ActionRejectedError, ArtifactError, ConfigError
from probebench.kernel.strictjson import parse_object
from tests.faults.fuzz import is_sentence
from tests.faults.readers import READERS
from tests.rigs import registry

CORPUS = Path(__file__).parents[1] / "vectors/corpus.jsonl"
ENTRIES: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text().splitlines()]


def reader_of(name: str, folder: Path) -> Callable[[bytes], object]:
    def read_whole_config(data: bytes) -> object:
        (folder / "config.json").write_bytes(data)
        return entry_of(registry(), read_config(folder / "config.json"))

    others = {name: read for name, (read, _) in READERS.items()}
    return {**others, "line": parse_object, "config": read_whole_config}[name]


def end_of(entry: dict[str, Any], folder: Path) -> tuple[str, str]:
    """What the reader says of the bytes, and the sentence beside it."""
    data = entry["bytes"].encode("latin-1")
    try:
        reader_of(entry["reader"], folder)(data)
    except ActionRejectedError as error:
        return error.code, error.message
    except ArtifactError as error:
        return error.artifact, str(error)
    except ConfigError as error:
        return "refused", str(error)
    return "read", "it was read"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["fault"])
def test_a_past_fault_stays_away(entry: dict[str, Any], tmp_path: Path) -> None:
    end, sentence = end_of(entry, tmp_path)
    assert end == entry["end"]
    assert is_sentence(sentence, most=2000)


def test_a_reader_of_each_kind_is_in_the_corpus() -> None:
    assert {entry["reader"] for entry in ENTRIES} >= {"line", "config", "study", "manifest"}
