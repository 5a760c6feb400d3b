"""Write the JSON Schemas of every environment's messages to docs/schemas.

One file a message, named <environment>.<message>.json, as `probebench schema`
prints it.  With --check, write nothing and exit 1 if a file on disk is
another, missing or left over.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from probebench.app.registry import default_registry
from probebench.app.streams import pretty

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"


def texts() -> dict[str, str]:
    """The text of every schema by the name of its file."""
    return {
        f"{environment}.{message}.json": pretty(schema)
        for environment, entry in sorted(default_registry().items())
        if entry.schemas is not None
        for message, schema in entry.schemas().items()
    }


def outdated(folder: Path, wanted: dict[str, str]) -> list[str]:
    """Names of the files that are missing, left over, or of another content."""
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return sorted(
        name for name in present.keys() | wanted.keys() if present.get(name) != wanted.get(name)
    )


def write(folder: Path, wanted: dict[str, str]) -> None:
    """Make the folder hold exactly these files."""
    folder.mkdir(exist_ok=True)
    for name in outdated(folder, wanted):
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()


def main() -> int:
    """Write or check the schemas."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    if not parser.parse_args().check:
        write(FOLDER, texts())
        return 0
    if names := outdated(FOLDER, texts()):
        print(f"out of date in docs/schemas: {', '.join(names)}; run make vectors", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
