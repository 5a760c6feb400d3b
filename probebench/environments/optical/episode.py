"""The optical episode: two tracks over one camera, as a state machine."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from probebench.environments.optical import disclosure
from probebench.environments.optical.actions import Standing, read_action
from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.display import frame_png
from probebench.environments.optical.estimator import observations_digest
from probebench.kernel.budget import FREE, Charge, Ledger
from probebench.kernel.canonical import Json, encode, sha256_hex
from probebench.kernel.episode import (
    Action,
    Ask,
    Cause,
    Effect,
    Fault,
    Final,
    Launch,
    Rejection,
    Task,
    Value,
)
from probebench.kernel.turn import request_id
from probebench.wire import optical as wire

Frame = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Expose = Callable[[list[float], int], Frame]

PORT = "agent"


@dataclass(frozen=True)
class Exposure:
    """One acquired image and the command it was acquired under."""

    command_opd_nm: list[float]
    frame_e: Frame


class OpticalEpisode:
    """State: the exposures, the saved fits, the ledger, and how it ended."""

    def __init__(
        self,
        config: OpticalConfig,
        calibration: Calibration,
        ledger: Ledger,
        nonce: bytes,
        expose: Expose,
    ) -> None:
        """Open the episode: acquire the image under the zero command.

        expose: the opaque instrument; (command (6,) nm OPD, exposure index)
        to a frame (rows, columns) in electrons.
        """
        self._config = config
        self._calibration = calibration
        self._ledger = ledger
        self._nonce = nonce
        self._instrument = expose
        self._exposures: list[Exposure] = []
        self._fits: dict[str, Json] = {}
        self._wanted_fit: str | None = None
        self._identifiers = [request_id(nonce, 0)]
        self._last_result: Json = None
        self._final_command: list[float] | None = None
        self._cause: wire.Outcome | None = None
        self._effect: Effect | None = None
        self.opening_charge = self._exposure_charge()
        self._ledger.spend(self.opening_charge)
        self._acquire([0.0] * wire.MODES)

    # -- the episode protocol ------------------------------------------------

    def pending(self) -> Effect:
        """The one pending effect; its message is built once a state."""
        if self._effect is None:
            self._effect = self._next_effect()
        return self._effect

    def parse(self, ask: Ask, line: bytes) -> Action:
        """Read a line as an action; every rule is checked before any effect.

        Raises ActionRejectedError with a code of docs/protocol.md.
        """
        del ask
        return read_action(line, self._standing())

    def cost(self, cause: Cause) -> Charge:
        """A parsed line costs a request; an action, what it uses besides.

        The estimate is charged with its request, so that a fit interrupted
        before its publication is charged once.
        """
        match cause:
            case Fault() | Value():
                return FREE
            case Action(name="expose"):
                return {"requests": 1, **self._exposure_charge()}
            case Action(name="estimate"):
                return {"requests": 1, "estimates": 1}
            case _:
                return {"requests": 1}

    def apply(self, cause: Cause) -> None:
        """Move to the next state."""
        self._ledger.spend(self.cost(cause))
        self._effect = None
        match cause:
            case Fault(kind=kind):
                self._fail(kind.value)
                return
            case Rejection(code=code, message=message):
                self._last_result = {"kind": "rejected", "code": code, "message": message}
            case Value(value=value):
                self._receive_fit(value)
            case Action():
                self._act(cause)
        if (
            self._cause is None
            and self._wanted_fit is None
            and not self._ledger.remaining("requests")
        ):
            self._fail("request_allowance")

    def state_digest(self) -> bytes:
        """Digest of everything that later behaviour depends on."""
        state = {
            "exposures": [[e.command_opd_nm, e.frame_e.tolist()] for e in self._exposures],
            "fits": self._fits,
            "wanted_fit": self._wanted_fit,
            "identifiers": self._identifiers,
            "last_result": self._last_result,
            "spent": self._ledger.spent,
            "final_command": self._final_command,
            "cause": None if self._cause is None else self._cause.model_dump(),
        }
        return bytes.fromhex(sha256_hex(encode(state)))

    def _standing(self) -> Standing:
        first = self._exposures[0].command_opd_nm
        return Standing(
            identifiers=self._identifiers,
            command_bound_nm=self._config.command_bound_nm,
            has_estimator=self._config.track == "tool_assisted",
            estimates_left=self._ledger.remaining("estimates"),
            exposure_is_affordable=self._ledger.affords(self._exposure_charge()),
            has_two_commands=any(e.command_opd_nm != first for e in self._exposures),
        )

    # -- acting --------------------------------------------------------------

    def _act(self, action: Action) -> None:
        self._identifiers.append(request_id(self._nonce, len(self._identifiers)))
        if action.name == "expose":
            self._acquire(action.fields["command_opd_nm"])
            self._last_result = {"kind": "exposed", "exposure_index": len(self._exposures) - 1}
        elif action.name == "submit":
            self._final_command = action.fields["command_opd_nm"]
            self._cause = wire.Outcome(status="submitted", cause="submitted")
        else:
            self._want_fit()

    def _acquire(self, command_opd_nm: list[float]) -> None:
        frame_e = self._instrument(command_opd_nm, len(self._exposures))
        self._exposures.append(Exposure(command_opd_nm, frame_e))

    def _want_fit(self) -> None:
        digest = observations_digest(*self._observations())
        if digest in self._fits:
            self._show_fit(digest, cached=True)
        else:
            self._wanted_fit = digest

    def _receive_fit(self, value: Json) -> None:
        if self._wanted_fit is None:
            raise ValueError("a value came although no fit is pending")
        digest, self._wanted_fit = self._wanted_fit, None
        self._fits[digest] = value
        self._show_fit(digest, cached=False)

    def _show_fit(self, digest: str, *, cached: bool) -> None:
        self._last_result = {"kind": "estimated", "cached": cached, "fit": self._fits[digest]}

    def _fail(self, cause: str) -> None:
        self._wanted_fit = None
        self._final_command = self._exposures[-1].command_opd_nm
        self._cause = wire.Outcome.model_validate({"status": "failed", "cause": cause})

    def _exposure_charge(self) -> dict[str, int]:
        return {"exposures": 1, "photons": self._config.detector.photons_per_exposure}

    def _observations(self) -> tuple[list[Frame], list[list[float]]]:
        return [e.frame_e for e in self._exposures], [e.command_opd_nm for e in self._exposures]

    # -- effects -------------------------------------------------------------

    def _next_effect(self) -> Effect:
        if self._cause is not None:
            return self._final(self._cause)
        if self._wanted_fit is not None:
            return self._fit_task(self._wanted_fit)
        return Ask(
            key=f"request-{self._ledger.spent['requests'] + 1}",
            port=PORT,
            launch=Launch.SHARED,
            body=self._request(),
            deadline_s=self._config.input_deadline_s,
            witness="previous_record_sha256",
        )

    def _fit_task(self, digest: str) -> Task:
        frames_e, commands_opd_nm = self._observations()
        return Task(
            key=f"fit-{digest[:16]}",
            kind="fit",
            spec={
                "calibration": self._calibration.document(),
                "frames_e": [frame_e.tolist() for frame_e in frames_e],
                "commands_opd_nm": commands_opd_nm,
            },
        )

    def _final(self, outcome: wire.Outcome) -> Final:
        command = self._final_command
        assert command is not None  # noqa: S101 - set together with the cause
        commands = [e.command_opd_nm for e in self._exposures]
        farewell = {
            "protocol": wire.PROTOCOL,
            "kind": "final",
            "outcome": outcome.model_dump(),
            "final_command_opd_nm": command,
            "earlier_observations_of_final_command": [
                index for index, measured in enumerate(commands) if measured == command
            ],
            "resources": self._resources(),
            "last_acquired_observation": self._observation(),
        }
        return Final(
            submitted=outcome.status == "submitted",
            cause=outcome.cause,
            evidence={"exposed_commands_opd_nm": commands, "final_command_opd_nm": command},
            farewell=farewell,
            port=PORT,
            witness="previous_record_sha256",
        )

    def _request(self) -> dict[str, Json]:
        assisted = self._config.track == "tool_assisted"
        return {
            "protocol": wire.PROTOCOL,
            "kind": "request",
            "request_id": self._identifiers[-1],
            "turn": self._ledger.spent["requests"] + 1,
            "track": self._config.track,
            "instrument": disclosure.instrument(self._calibration),
            "estimator": disclosure.estimator(self._calibration) if assisted else None,
            "resources": self._resources(),
            "available_actions": self._standing().available(),
            "last_result": self._last_result,
            "observation": self._observation(),
        }

    def _resources(self) -> Json:
        return {"limits": dict(self._ledger.budget.limits), "spent": dict(self._ledger.spent)}

    def _observation(self) -> Json:
        exposure = self._exposures[-1]
        png = frame_png(exposure.frame_e, self._config.detector.photons_per_exposure)
        return {
            "command_opd_nm": exposure.command_opd_nm,
            "exposure_index": len(self._exposures) - 1,
            "electrons": exposure.frame_e.tolist(),
            "png_base64": base64.b64encode(png).decode(),
            "row_order": disclosure.ROW_ORDER,
        }
