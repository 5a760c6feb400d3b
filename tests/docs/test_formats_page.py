"""docs/formats.md lists the files, fields, versions and exit codes that there are."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from probebench.app.session import run_session
from probebench.app.sign import sign_folder
from probebench.app.signature import DOMAIN, SIGNATURE, SIGNATURE_FORMAT
from probebench.host import keys
from probebench.host.filesystem import Filesystem
from probebench.kernel import study, turn
from probebench.kernel.errors import ExitCode
from tests.environments.optical.protocol_page import table
from tests.environments.optical.protocol_session import Case, exposes, play_case, small_config
from tests.rigs import RepliesInProcess, constant_rig

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
FORMATS = {
    "study.json": study.STUDY_FORMAT,
    "session.json": turn.SESSION_FORMAT,
    "turns/turn_NNNN_input.json": turn.INPUT_FORMAT,
    "turns/turn_NNNN_fault.json": turn.FAULT_FORMAT,
    "turns/turn_NNNN_response.json": turn.RESPONSE_FORMAT,
    "evaluator.json": turn.EVALUATOR_FORMAT,
    "manifest.json": turn.MANIFEST_FORMAT,
    SIGNATURE: SIGNATURE_FORMAT,
}
HEADINGS = {
    "study.json": "Field of study.json",
    "session.json": "Field of session.json",
    "turns/turn_0001_input.json": "Field of an input record",
    "turns/turn_0002_fault.json": "Field of a fault record",
    "turns/turn_0001_response.json": "Field of a response record",
    "evaluator.json": "Field of evaluator.json",
    "manifest.json": "Field of manifest.json",
    SIGNATURE: "Field of signature.json",
}


def names_in(cell: str) -> list[str]:
    """The names in backticks in a cell."""
    return cell.split("`")[1::2]


def fields_listed(heading: str) -> set[str]:
    return {name for cells in table(TEXT, heading) for name in names_in(cells[0])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed session of one exposure that ends in an oversize line, a fault."""

    def ends_badly(wire: Any) -> None:
        wire.write(exposes()(wire.read()))
        wire.read()
        wire.write(b"x" * 20_000)
        wire.read()

    case = Case(program=ends_badly)
    root = tmp_path_factory.mktemp("formats")
    played = play_case(case, root / "session").folder
    keys.make_key(root / "key", Filesystem())
    sign_folder(constant_rig(), played, keys.read_signing_key(root / "key"))
    return played


def document(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return content


def test_every_format_is_listed_with_its_version() -> None:
    listed = {names_in(cells[0])[0]: names_in(cells[2]) for cells in table(TEXT, "File")}
    assert {name: found[0] for name, found in listed.items() if found} == FORMATS
    assert {name for name, found in listed.items() if not found} == {"source/", "tasks/<key>/"}


@pytest.mark.parametrize("name", HEADINGS)
def test_every_field_of_a_file_is_listed(name: str, folder: Path) -> None:
    assert fields_listed(HEADINGS[name]) == set(document(folder, name))


def test_every_figure_of_the_evaluation_is_listed(folder: Path) -> None:
    evaluation = document(folder, "evaluator.json")["evaluation"]
    assert fields_listed("Field of an optical evaluation") == set(evaluation)


def test_a_session_has_no_file_that_is_not_listed(folder: Path) -> None:
    known = {names_in(cells[0])[0] for cells in table(TEXT, "File")}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith("source/"):
            assert name.replace("0001", "NNNN").replace("0002", "NNNN") in known


def test_every_exit_code_is_listed() -> None:
    listed = {cells[1]: int(cells[0]) for cells in table(TEXT, "Code")}
    assert listed == {code.name: int(code) for code in ExitCode}


def test_a_message_carries_the_digest_of_the_input_that_it_answers(folder: Path) -> None:
    """As the page says, and as docs/security.md has witnesses compare it."""
    first = document(folder, "session.json")
    assert first["message"]["previous_record_sha256"] == first["previous_sha256"]
    for number, kind in ((1, "input"), (2, "fault")):
        data = (folder / "turns" / f"turn_{number:04d}_{kind}.json").read_bytes()
        response = document(folder, f"turns/turn_{number:04d}_response.json")
        assert response["message"]["previous_record_sha256"] == hashlib.sha256(data).hexdigest()


def test_the_root_of_the_chain_is_keyed_by_the_nonce(folder: Path) -> None:
    session = document(folder, "session.json")
    study_bytes = (folder / "study.json").read_bytes()
    nonce = bytes.fromhex(session["nonce"])
    root = hmac.new(nonce, b"chain root\n" + study_bytes, hashlib.sha256).hexdigest()
    assert session["previous_sha256"] == root
    identifier = hmac.new(nonce, b"request 0", hashlib.sha256).hexdigest()[:32]
    assert session["message"]["request_id"] == identifier


def test_a_signature_is_over_the_domain_and_the_manifest(folder: Path) -> None:
    described = document(folder, SIGNATURE)
    assert DOMAIN == b"probebench.manifest.v1\0"
    assert len(DOMAIN) == 23
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(described["public_key"]))
    manifest = (folder / "manifest.json").read_bytes()
    key.verify(bytes.fromhex(described["signature"]), b"probebench.manifest.v1\0" + manifest)


def test_the_driver_waits_for_no_client_before_the_session_record_is_there(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def reply(_ask: object, _message: object) -> bytes:
        seen.append({path.name for path in (tmp_path / "a").iterdir()})
        return b"\n"

    clients = RepliesInProcess(reply)
    run_session(constant_rig(), tmp_path / "a", small_config(requests=1), clients)
    assert seen == [{"source", "study.json", "session.json"}]
