"""What the documentation shows is run, and what it links to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import anchors, blocks, links, pages
from tests.docs.runner import Desk, run_block, without_not_run

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = pages(ROOT)
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
KNOWN_LANGUAGES = {"sh", "console", "python", "json", "text", "toml", "html"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_commands_of_a_page_work_in_order(page: Path, tmp_path: Path) -> None:
    desk = Desk.lay(ROOT, tmp_path)
    for block in blocks(page.read_text(encoding="utf-8")):
        complaint = run_block(desk, block)
        assert complaint is None, f"{page.name}, line {block.line}: {complaint}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_block_names_a_known_language(page: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    assert [block for block in found if block.language not in KNOWN_LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    broken = [
        target for target in links(page.read_text(encoding="utf-8")) if not _leads(page, target)
    ]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_make_targets_that_a_page_names_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z]+)`|^make ([a-z]+)", page.read_text(), re.MULTILINE))
    assert {a or b for a, b in named} <= targets


def test_the_readme_begins_with_the_two_commands() -> None:
    first = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    commands = [line.partition("#")[0].strip() for line in first.text.splitlines()]
    assert commands == ["make demo", "make test"]
    assert without_not_run(first.text) == ""


def _leads(page: Path, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return True
    path, _, anchor = target.partition("#")
    file = (page.parent / path) if path else page
    if not file.exists():
        return False
    return not anchor or anchor in anchors(file.read_text(encoding="utf-8"))
