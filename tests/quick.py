"""Sessions that cost little: a machine asked about itself once, a small detector."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from probebench.app.rig import Rig
from probebench.host.filesystem import Filesystem
from probebench.kernel.canonical import Json
from tests.conformance import Case
from tests.environments.test_conformance import optical_config, optical_reply
from tests.rigs import constant_rig


def quick_rig(filesystem: Filesystem | None = None) -> Rig:
    """A constant rig that reads the versions of packages once, not once a session."""
    runtime, display = _machine()
    return replace(
        constant_rig(filesystem), runtime=lambda: runtime, display_runtime=lambda: display
    )


@cache
def _machine() -> tuple[Json, Json]:
    rig = constant_rig()
    return rig.runtime(), rig.display_runtime()


def small_optical_case(name: str = "agent_protocol_development") -> Case:
    """An optical session on a detector of 16 pixels, so that frames stay small."""
    config = optical_config(name)
    config["name"] = "golden"
    config["pupil"]["samples"] = 32
    config["detector"]["pixels"] = 16
    return Case(config, optical_reply)
