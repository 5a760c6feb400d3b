"""The pages of the documentation and what stands in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^ *(```+)(.*)$")
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    language: the first word after the fence.
    options: the ``key=value`` words after it.  ``exit=1`` is the exit status
        that a command block ends with; ``file=agent.py`` saves the block under
        that name instead of running it.  ``needs=bwrap`` runs it where there is
        such a program alone.
    line: where the fence stands, from 1.
    """

    language: str
    options: dict[str, str]
    text: str
    line: int


def pages(root: Path) -> list[Path]:
    """README.md and every page of docs, but for the sources of generated ones."""
    found = sorted((root / "docs").rglob("*.md"))
    return [root / "README.md", *(path for path in found if not path.name.endswith(".in.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page.  Raises ValueError for one that is never closed."""
    found: list[Block] = []
    fence, info, start, content = "", "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        match = FENCE.match(line)
        if not fence and match:
            fence, info, start, content = match[1], match[2], number, []
        elif fence and match and match[1] == fence and not match[2].strip():
            found.append(_block(info, content, start))
            fence = ""
        elif fence:
            content.append(line)
    if fence:
        raise ValueError(f"the block that begins in line {start} is never closed")
    return found


def links(text: str) -> list[str]:
    """The targets of all links outside fenced blocks."""
    inside = {
        number
        for block in blocks(text)
        for number in range(block.line, block.line + block.text.count("\n") + 2)
    }
    lines = enumerate(text.splitlines(), start=1)
    return [
        target for number, line in lines if number not in inside for target in LINK.findall(line)
    ]


def anchors(text: str) -> set[str]:
    """What links may point at within a page: its headings, spelled as in a URL."""
    inside_fences = {line for block in blocks(text) for line in block.text.splitlines()}
    headings = (line for line in text.splitlines() if line.startswith("#"))
    return {_anchor(line.lstrip("# ")) for line in headings if line not in inside_fences}


def _block(info: str, content: list[str], start: int) -> Block:
    words = info.split()
    options = dict(word.split("=", 1) for word in words[1:])
    text = "".join(f"{line}\n" for line in content)
    return Block(words[0] if words else "", options, text, start)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
