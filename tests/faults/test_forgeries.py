"""Forgers who also repair hashes and links are found, up to the stated limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probebench.app import verify
from probebench.app.verify import verify_folder
from probebench.kernel import turn as records
from probebench.kernel.canonical import Json, sha256_hex
from probebench.kernel.episode import Ask
from probebench.kernel.turn import Chain
from tests.faults.finished import (
    NESTED,
    OPTICAL,
    SESSIONS,
    TOY,
    Change,
    edited,
    following,
    rechained,
    require_refused,
    resealed,
    resealed_self,
    restored,
    set_field,
    verdict_of,
)
from tests.journals import record_paths
from tests.rigs import constant_rig, folder_bytes

FORGERIES: dict[str, tuple[str, Change]] = {
    "a better evaluation": (
        "evaluator.json",
        set_field("evaluation", "residual_wfe_nm_rms", value=0.1),
    ),
    "a smaller floor": (
        "evaluator.json",
        set_field("evaluation", "cramer_rao_floor_nm_rms", value=9.9),
    ),
    "fewer photons": ("evaluator.json", set_field("resources", "spent", "photons", value=0)),
    "another cause": ("evaluator.json", set_field("outcome", "cause", value="eof")),
    "another command": ("turns/turn_0003_input.json", set_field("received_base64", value="e30K")),
    "another estimate": (
        "turns/turn_0003_response.json",
        set_field("value", "value", "estimate_opd_nm", value=[0.0] * 6),
    ),
    "a smaller covariance": (
        "turns/turn_0003_response.json",
        set_field("value", "value", "covariance_nm2", 0, 0, value=1e-9),
    ),
    "another frame": (
        "turns/turn_0002_response.json",
        set_field("message", "observation", "electrons", 0, 0, value=1.5),
    ),
    "a smaller charge": (
        "turns/turn_0002_response.json",
        set_field("charge", "exposures", value=0),
    ),
    "no rejection": ("turns/turn_0001_response.json", set_field("rejection", value=None)),
    "another nonce": ("session.json", set_field("nonce", value="00" * 32)),
    "another wavefront": (
        "study.json",
        set_field("config", "fixture", "wavefront_seed", value="00" * 16),
    ),
    "more photons": (
        "study.json",
        set_field("config", "detector", "photons_per_exposure", value=10**6),
    ),
}


@pytest.mark.parametrize("chain_too", [False, True], ids=["resealed", "rechained"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forger_who_repairs_the_hashes_is_still_found(
    forgery: str, finished: dict[str, Path], *, chain_too: bool
) -> None:
    folder = finished[OPTICAL]
    name, change = FORGERIES[forgery]
    with restored(folder):
        edited(folder, name, change)
        if chain_too:
            rechained(folder)
        resealed(folder)
        failure = verdict_of(folder).failure
        assert failure is not None
        # What was received, and the nonce, are lawful whatever they are: what
        # follows from them, in the next record, is not.
        assert failure.artifact in (name, following(folder, name))


def test_a_forger_of_the_source_is_found(finished: dict[str, Path]) -> None:
    folder, name = finished[TOY], "source/probebench_stand_in.py"
    with restored(folder):
        (folder / name).write_bytes(b"# other source\n")
        resealed(folder)
        require_refused(folder, name)


@pytest.mark.parametrize("entry", ["../outside.json", "/etc/hostname", "turns/../study.json", ""])
def test_a_manifest_that_points_elsewhere_is_refused(entry: str, finished: dict[str, Path]) -> None:
    folder = finished[TOY]
    with restored(folder):
        edited(
            folder,
            "manifest.json",
            lambda d: d["files"].update({entry: {"bytes": 0, "sha256": ""}}),
        )
        resealed_self(folder)
        require_refused(folder, "manifest.json")


@pytest.mark.parametrize(
    "value", [[], 3, None, "x", {"turns": 1}], ids=["list", "number", "null", "text", "object"]
)
@pytest.mark.parametrize("field", ["files", "sessions", "outcome", "head_sha256", "format"])
def test_a_manifest_of_another_shape_is_refused_not_stumbled_over(
    field: str, value: Any, finished: dict[str, Path]
) -> None:
    folder = finished[TOY]
    with restored(folder):
        edited(folder, "manifest.json", set_field(field, value=value))
        resealed_self(folder)
        assert verdict_of(folder).failure is not None


# -- the stated limit, and the witness that reaches beyond it -------------------


def test_a_duration_cannot_be_changed_by_linking_the_later_records_alone(
    finished: dict[str, Path],
) -> None:
    """The next request carries the digest of the changed record, so replay sees it."""
    folder = finished[TOY]
    with restored(folder):
        edited(folder, "turns/turn_0001_input.json", set_field("timing", "input_wait_s", value=0.5))
        rechained(folder)
        resealed(folder)
        require_refused(folder, "turns/turn_0001_response.json")


def require_passes_but_for_the_head(folder: Path, head: str) -> None:
    assert verdict_of(folder).verified
    failure = verify_folder(constant_rig(), folder, expect_head=head).failure
    assert failure is not None
    assert "expected" in str(failure)


def test_a_changed_last_duration_passes_unless_the_head_was_noted_elsewhere(
    finished: dict[str, Path],
) -> None:
    folder = finished[TOY]
    head = verdict_of(folder).head_sha256
    last = str(record_paths(folder)[-1].relative_to(folder))
    with restored(folder):
        edited(folder, last, set_field("timing", "driver_s", value=9.0))
        rechained(folder)
        resealed(folder)
        require_passes_but_for_the_head(folder, head)


def test_a_session_played_anew_under_its_nonce_passes_unless_the_head_was_noted_elsewhere(
    finished: dict[str, Path], tmp_path: Path
) -> None:
    def reply(ask: Ask, message: dict[str, Any]) -> bytes:
        return SESSIONS[TOY].reply(ask, message) if message["step"] else b"[]\n"

    replace(SESSIONS[TOY], reply=reply).run(tmp_path / "anew", constant_rig())
    assert folder_bytes(tmp_path / "anew") != folder_bytes(finished[TOY])
    require_passes_but_for_the_head(tmp_path / "anew", verdict_of(finished[TOY]).head_sha256)


# -- broken verifiers, which the tests above must catch ----------------------------


def test_without_the_recomputed_evaluation_a_forged_one_would_pass(
    finished: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify._Verification, "same", lambda *_: True)
    folder = finished[OPTICAL]
    with restored(folder):
        change = set_field("evaluation", "residual_wfe_nm_rms", value=0.1)
        edited(folder, "evaluator.json", change)
        resealed(folder)
        assert verdict_of(folder).verified


def test_without_the_hash_of_the_source_another_one_would_pass(
    finished: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = finished[TOY], "source/probebench_stand_in.py"
    genuine = sha256_hex((folder / name).read_bytes())
    monkeypatch.setattr(verify, "sha256_hex", lambda data: genuine)
    with restored(folder):
        (folder / name).write_bytes(b"# other source\n")
        resealed(folder)
        assert verdict_of(folder).verified


def follow_without_looking(chain: Chain, data: bytes) -> dict[str, Json]:
    """Read a record as Chain.follow does, whatever it is linked to."""
    document = records.record_from(data)
    chain.head = sha256_hex(data)
    return {k: v for k, v in document.items() if k not in ("previous_sha256", "timing")}


def test_without_the_chain_a_changed_duration_would_pass(
    finished: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished[NESTED]
    with restored(folder):
        edited(folder, "turns/turn_0001_response.json", set_field("timing", "task_s", value=9.0))
        resealed(folder)
        require_refused(folder, "turns/turn_0002_response.json")
        monkeypatch.setattr(Chain, "follow", follow_without_looking)
        assert verdict_of(folder).verified
