"""The tables of docs/protocol.md, as a test reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COUNTERS = ("requests", "exposures", "photons", "estimates")
PAGE = Path("docs") / "protocol.md"


@dataclass(frozen=True)
class Row:
    """One row of the table of inputs.

    outcome: ``accepted``, ``ignored``, ``rejected: `code` `` or ``ends: `cause` ``.
    counters: what the input adds, by counter, "+N" being the photons of an exposure.
    """

    input: str
    outcome: str
    counters: dict[str, str]

    @property
    def code(self) -> str:
        """The rejection code or the cause; "" for what has neither."""
        return self.outcome.partition("`")[2].rstrip("`")

    @property
    def is_rejection(self) -> bool:
        """Whether the input is rejected."""
        return self.outcome.startswith("rejected: ")


def table(page: str, first_heading: str) -> list[list[str]]:
    """The cells of the one table whose first column has this heading, without its head."""
    lines = page.splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.startswith(f"| {first_heading} |")]
    return list(_rows(lines[start + 2 :]))


def _rows(lines: list[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def input_rows(page: str) -> list[Row]:
    """The table of inputs."""
    return [
        Row(cells[0], cells[1], dict(zip(COUNTERS, cells[2:], strict=True)))
        for cells in table(page, "Input")
    ]
