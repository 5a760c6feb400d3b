"""What there is to see of an optical session: wavefront, frames, fits, budget, refusals."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence

import numpy as np

from probebench.environments.optical.display import frame_png
from probebench.environments.optical.recorded import (
    ShownFit,
    action_of,
    last_message,
    mode_names,
    observations,
    peak_e,
    shown_fits,
    vector_text,
)
from probebench.kernel.canonical import Json
from probebench.kernel.page import (
    Bar,
    Bars,
    Block,
    ColourScale,
    Gallery,
    Level,
    Note,
    Picture,
    Plot,
    Section,
    Series,
    Table,
    Ticks,
)
from probebench.kernel.report import RecordedSession, RecordedTurn

SHOWN_CHARACTERS = 200  # of a refused line; the record has all of it
LOG_FROM_RATIO = 10  # values that span more are drawn by their logarithm


def sections(session: RecordedSession) -> list[Section]:
    """The session in the order in which a person asks about it."""
    return [
        Section("Wavefront error", _wavefront(session)),
        Section("Frames and commands", _frames(session)),
        Section("Fits", list(_fits(session))),
        Section("Budget", [_budget(last_message(session)["resources"])]),
        Section("Rejections and failures", list(_refusals(session))),
    ]


# -- wavefront error against exposures ---------------------------------------------


def _wavefront(session: RecordedSession) -> list[Block]:
    if session.evaluator is None:
        return [
            Note(
                "The session is unfinished and has not been evaluated: the wavefront error of "
                "its commands is not known here."
            )
        ]
    evaluation = session.evaluator["evaluation"]
    floor = evaluation["cramer_rao_floor_nm_rms"]
    reason = evaluation["cramer_rao_floor_reason"]
    none = [] if floor is not None else [Note(f"There is no Cramer-Rao floor: {reason}.")]
    return [_wavefront_plot(evaluation, floor), *none]


def _wavefront_plot(evaluation: Json, floor: float | None) -> Plot:
    measured = evaluation["measured_wfe_nm_rms"]
    final = evaluation["residual_wfe_nm_rms"]
    zero, best = evaluation["zero_command_wfe_nm_rms"], evaluation["best_measured_wfe_nm_rms"]
    best_index = evaluation["best_measured_exposure_index"]
    levels = [Level("zero command", zero), Level(f"best measured, exposure {best_index}", best)]
    if floor is not None:
        levels.append(Level("Cramer-Rao floor of the images", floor))
    values = [*measured, final, *(level.y for level in levels)]
    log = min(values) > 0 and max(values) / min(values) > LOG_FROM_RATIO
    return Plot(
        alt=f"Wavefront error of {len(measured)} measured commands, from {measured[0]:.1f} nm RMS "
        f"under the zero command to {final:.2f} nm RMS under the final one",
        x_label="exposure",
        y_label="WFE / nm RMS",
        unit="nm RMS",
        x_ticks=[*((i, str(i)) for i in range(len(measured))), (len(measured), "final")],
        series=[
            Series("measured commands", list(enumerate(measured))),
            Series("final command", [(len(measured), final)]),
        ],
        levels=levels,
        log_y=log,
    )


# -- frames and commands -------------------------------------------------------------


def _frames(session: RecordedSession) -> list[Block]:
    instrument, names = session.first_message["instrument"], mode_names(session)
    ticks = lambda_over_d_ticks(instrument["columns"], instrument["samples_per_lambda_over_d"])
    pictures = [
        Picture(
            title=f"exposure {seen['exposure_index']}, peak {peak_e(seen):.0f} e-",
            alt=f"Frame of exposure {seen['exposure_index']} under the command "
            f"{vector_text(seen['command_opd_nm'])} nm OPD; peak {peak_e(seen):.0f} electrons",
            png=base64.b64decode(seen["png_base64"], validate=True),
            ticks=ticks,
            bars=_command_bars(
                "command / nm OPD", names, seen["command_opd_nm"], instrument["command_bound_nm"]
            ),
        )
        for seen in observations(session)
    ]
    gallery = Gallery(
        pictures,
        "offset from the optical axis / (lambda/D); row 0 at the bottom",
        electron_scale(instrument["photons_per_exposure"]),
    )
    return [gallery, *_final_command(session, names, instrument["command_bound_nm"])]


def _final_command(
    session: RecordedSession, names: Sequence[str], bound_nm: float
) -> Iterator[Block]:
    message = last_message(session)
    if message["kind"] != "final":
        return
    earlier = message["earlier_observations_of_final_command"]
    where = (
        f"measured in exposure {', '.join(map(str, earlier))}"
        if earlier
        else "no image taken of it"
    )
    yield _command_bars(
        f"final command / nm OPD ({where})", names, message["final_command_opd_nm"], bound_nm
    )


def _command_bars(
    title: str, names: Sequence[str], command_opd_nm: Sequence[float], bound_nm: float
) -> Bars:
    bars = [
        Bar(name, value / bound_nm, f"{value:.1f}")
        for name, value in zip(names, command_opd_nm, strict=True)
    ]
    return Bars(f"{title}, scale to ±{bound_nm:g}", bars, signed=True)


def lambda_over_d_ticks(pixels: int, samples_per_lambda_over_d: float) -> Ticks:
    """Round offsets from the optical axis, at (pixels-1)/2, that lie on the detector.

    Returns (fraction of the detector's width, offset in lambda/D).
    """
    half = (pixels - 1) / 2 / samples_per_lambda_over_d
    decade = 10.0 ** math.floor(math.log10(half / 1.5))
    step = max(decade * factor for factor in (1, 2, 5) if decade * factor <= half / 1.5)
    count = math.floor(half / step)
    return [
        (0.5 + i * step * samples_per_lambda_over_d / pixels, f"{i * step:g}")
        for i in range(-count, count + 1)
    ]


def electron_scale(photons_per_exposure: int) -> ColourScale:
    """The colours of ``frame_png`` over their range, with electrons at every decade."""
    top = math.log1p(photons_per_exposure)
    ramp_e = np.expm1(np.linspace(0, top, 256))[np.newaxis]
    decades = [0, *(10**power for power in range(1, int(math.log10(photons_per_exposure)) + 1))]
    # Room for the last label.
    ends = [*(e for e in decades if math.log1p(e) / top < 0.85), photons_per_exposure]
    return ColourScale(
        label="electrons per pixel, colour by log1p of it; the end is the photons expected "
        "in the whole image",
        png=frame_png(ramp_e, photons_per_exposure),
        ticks=[(math.log1p(e) / top, f"{e:,}") for e in ends],
    )


# -- fits ------------------------------------------------------------------------------


def _fits(session: RecordedSession) -> Iterator[Block]:
    shown, names = shown_fits(session), mode_names(session)
    if not shown:
        yield Note("The client was shown no fit.")
    bound_nm = session.first_message["instrument"]["command_bound_nm"]
    for entry in shown:
        if entry.cached:
            yield Note(f"Turn {entry.turn}: the saved fit of the same images, shown again.")
        elif entry.fit["status"] != "converged":
            yield Note(f"Turn {entry.turn}: {_failed_fit(entry.fit)}")
        else:
            yield from _converged_fit(entry, names, bound_nm)


def _failed_fit(fit: Json) -> str:
    return (
        f"the fit failed ({fit['failure']}); {_starts(fit)}. The fallback was the command of "
        f"exposure {fit['fallback']['exposure_index']}, the sharpest image."
    )


def _converged_fit(shown: ShownFit, names: Sequence[str], bound_nm: float) -> Iterator[Block]:
    fit = shown.fit
    sigmas_nm = [math.sqrt(row[mode]) for mode, row in enumerate(fit["covariance_nm2"])]
    title = f"turn {shown.turn}: estimate ± 1 sigma of the likelihood / nm OPD"
    yield _basin(title, names, fit["estimate_opd_nm"], bound_nm, sigmas_nm)
    clipped = " The suggested command is clipped to the bound." * fit["suggested_command_clipped"]
    others = "" if fit["other_basins"] else " No other basin lies near."
    yield Note(
        f"Misfit {fit['misfit_sigma']:+.1f} sigma; {_starts(fit)}.{clipped}{others} "
        "A converged fit can be in the wrong basin."
    )
    for basin in fit["other_basins"]:
        distance = f"{basin['log_likelihood_distance']:.2f} below in log-likelihood"
        how = "not distinguished by the images" if basin["tie"] else distance
        yield _basin(
            f"turn {shown.turn}, another basin, {how} / nm OPD", names, basin["opd_nm"], bound_nm
        )


def _starts(fit: Json) -> str:
    converged = sum(start["status"] == "converged" for start in fit["starts"])
    return f"{converged} of {len(fit['starts'])} starts converged"


def _basin(
    title: str,
    names: Sequence[str],
    opd_nm: Sequence[float],
    bound_nm: float,
    sigmas_nm: Sequence[float] | None = None,
) -> Bars:
    end_nm = max(bound_nm, *map(abs, opd_nm))
    spread = [None] * len(opd_nm) if sigmas_nm is None else [s / end_nm for s in sigmas_nm]
    texts = (
        [f"{value:.1f}" for value in opd_nm]
        if sigmas_nm is None
        else [f"{value:.2f} ± {s:.2f}" for value, s in zip(opd_nm, sigmas_nm, strict=True)]
    )
    bars = [
        Bar(name, value / end_nm, text, spread)
        for name, value, text, spread in zip(names, opd_nm, texts, spread, strict=True)
    ]
    return Bars(f"{title}, scale to ±{end_nm:.0f}", bars, signed=True)


# -- budget and refusals -----------------------------------------------------------------


def _budget(resources: Json) -> Bars:
    spent, limits = resources["spent"], resources["limits"]
    return Bars(
        "spent of the limit",
        [
            Bar(name, spent[name] / limit if limit else 0.0, f"{spent[name]:,} of {limit:,}")
            for name, limit in limits.items()
        ],
    )


def _refusals(session: RecordedSession) -> Iterator[Block]:
    outcome = last_message(session).get("outcome", {})
    failed = outcome.get("status") == "failed"
    rows = [_refusal(turn) for turn in session.turns if not action_of(turn)]
    if failed:
        yield Note(f"The episode failed ({outcome['cause']}) at its last measured command.")
    if rows:
        yield Table(("turn", "what", "why", "what came"), rows, verbatim=("what came",))
    elif not failed:
        yield Note("None.")


def _refusal(turn: RecordedTurn) -> tuple[str, str, str, str]:
    message = turn.response["message"]
    final = message["kind"] == "final"
    why = "it ended the episode" if final else message["last_result"]["message"]
    what = turn.response["rejection"] or f"fault: {turn.fault}"
    return str(turn.turn), what, why, _quoted(turn.received or b"")


def _quoted(received: bytes) -> str:
    text = received.decode(errors="backslashreplace").rstrip("\n")
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]} ... ({len(received):,} bytes in all)"
