"""The package's source by path, and what has changed in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import probebench
from probebench.host import snapshot
from probebench.kernel.errors import HostError


def test_every_source_file_is_captured_and_nothing_compiled_or_hidden(tmp_path: Path) -> None:
    (tmp_path / "inner" / "__pycache__").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("b.py", "inner/a.py", "inner/table.json", "py.typed"):
        (tmp_path / name).write_bytes(name.encode())
    for name in ("b.py~", ".b.py.swp", "c.so", "inner/__pycache__/a.pyc", ".git/x.py", "d.nbi"):
        (tmp_path / name).write_bytes(b"no source")
    files = snapshot.capture(tmp_path)
    assert list(files) == ["b.py", "inner/a.py", "inner/table.json", "py.typed"]
    assert files["inner/a.py"] == b"inner/a.py"


def test_the_installed_package_can_be_captured() -> None:
    files = snapshot.capture(Path(probebench.__file__).parent)
    own = Path(snapshot.__file__).read_bytes()
    assert files["host/snapshot.py"] == own
    assert snapshot.hashes(files)["host/snapshot.py"] == hashlib.sha256(own).hexdigest()


def test_a_folder_without_source_is_an_error(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "missing"):
        with pytest.raises(HostError, match="there is no source"):
            snapshot.capture(root)


def test_each_difference_is_named() -> None:
    frozen = {"a.py": "1", "b.py": "2", "c.py": "3"}
    current = {"a.py": "1", "b.py": "x", "d.py": "4"}
    assert snapshot.differences(frozen, frozen) == []
    assert snapshot.differences(frozen, current) == [
        "source file b.py has changed",
        "source file c.py is gone",
        "source file d.py is new",
    ]
