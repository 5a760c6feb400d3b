"""Journals with what differs from run to run masked, and chained again."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from probebench.kernel.canonical import decode, encode, sha256_hex

ROOT = "0" * 64


def record_paths(folder: Path) -> list[Path]:
    """session.json and the turn records, in the order of the chain."""
    order = {"input": 0, "fault": 0, "response": 1}

    def key(path: Path) -> tuple[int, int]:
        _, number, kind = path.stem.split("_")
        return int(number), order[kind]

    return [folder / "session.json", *sorted((folder / "turns").iterdir(), key=key)]


def masked(folder: Path) -> list[bytes]:
    """The journal with nonce, identifiers and durations masked, and rechained."""
    identifiers: dict[str, str] = {}
    records: list[bytes] = []
    head = ROOT
    for path in record_paths(folder):
        record = decode(path.read_bytes())
        if "nonce" in record:
            record["nonce"] = "masked"
        record.pop("timing", None)
        message = record.get("message")
        if message is not None:
            # A request carries the digest of the record before its own.
            message["previous_record_sha256"] = head
            if "request_id" in message:
                message["request_id"] = _name(identifiers, message["request_id"])
        if "received_base64" in record:
            record["received_base64"] = _masked_line(record["received_base64"], identifiers)
        record["previous_sha256"] = head
        records.append(encode(record))
        head = sha256_hex(records[-1])
    return records


def _name(identifiers: dict[str, str], identifier: str) -> str:
    return identifiers.setdefault(identifier, f"request {len(identifiers)}")


def _masked_line(received_base64: str, identifiers: dict[str, str]) -> Any:
    line = base64.b64decode(received_base64)
    for identifier, name in identifiers.items():
        line = line.replace(identifier.encode(), name.encode())
    try:
        return json.loads(line)
    except ValueError:
        return line.decode("latin-1")
