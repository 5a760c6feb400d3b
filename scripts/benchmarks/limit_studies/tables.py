"""The document of the limits as tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from probebench.environments.optical.modes import NOLL_INDICES

FIRST_ORDER = (
    "First order: what the ratio would be for errors so small that images are linear in them; "
    "above 1 by the information that the shifted Poisson likelihood leaves unused. What a ratio "
    "with control variate has beyond that is curvature."
)


def markdown(document: dict[str, Any]) -> list[str]:
    """All tables of a document, each under a heading of the third level."""
    return [
        *efficiency(document["efficiency"]),
        "",
        *basins(document["basins"]),
        "",
        *designs(document["designs"]),
    ]


def efficiency(study: dict[str, Any]) -> list[str]:
    """RMS error over the floor, cell by cell, and the averages."""
    columns = [
        "photons",
        "read noise / e-",
        "trials",
        "floor / nm RMS",
        "fit rms / floor",
        "with control variate",
        "first order",
        "squared error / covariance",
        "wrong basin",
        "wrong basin, 95 %",
        "all fits / floor",
    ]
    rows = [
        (
            f"{cell['photons']:,}",
            f"{cell['read_noise_e']:g}",
            f"{cell['trials']:,}",
            f"{cell['floor_nm_rms']:.3g}",
            _measured(cell["ratio"], cell["standard_error"]),
            _measured(cell["controlled_ratio"], cell["controlled_standard_error"], 4),
            f"{cell['first_order_ratio']:.4f}",
            _measured(cell["normalised_error"], cell["normalised_error_standard_error"], 4),
            f"{cell['trials'] - cell['right_basin']}",
            f"{100 * (1 - cell['high']):.2f} to {100 * (1 - cell['low']):.2f} %",
            f"{cell['ratio_of_all']:.3f}",
        )
        for cell in study["cells"]
    ]
    return [
        "### Fit rms over the Cramer-Rao floor",
        "",
        *_table(columns, rows),
        "",
        _summary(study["summary"]),
        "",
        FIRST_ORDER,
    ]


def _summary(found: dict[str, Any]) -> str:
    average = _measured(found["average"], found["standard_error"], 4)
    controlled = _measured(found["controlled_average"], found["controlled_standard_error"], 4)
    return (
        f"From {found['from_photons']:,} photons on, {found['cells']} cells: fit rms / floor from "
        f"{found['least']:.3f} to {found['most']:.3f}, on average {average}; with control variate "
        f"from {found['controlled_least']:.4f} to {found['controlled_most']:.4f}, on average "
        f"{controlled}; {found['wrong_basin']} of {found['trials']:,} fits in a wrong basin."
    )


def basins(study: dict[str, Any]) -> list[str]:
    """How often the estimate lies in the right basin."""
    columns = ["wavelength / nm", "incident RMS / nm", "images", "right basin", "rate", "95 %"]
    columns += ["wrong but listed", "no estimate"]
    rows = [
        (
            f"{row['wavelength_nm']:g}",
            f"{row['incident_rms_nm']:g}",
            str(row["images"]),
            f"{row['right_basin']:,} of {row['trials']:,}",
            *_rate(row),
            str(row["wrong_but_listed"]),
            str(row["without_estimate"]),
        )
        for row in study["rows"]
    ]
    together = "; ".join(
        f"{row['right_basin']:,} of {row['trials']:,} with {row['images']} images "
        f"(95 %: {_rate(row)[1]})"
        for row in study["claimed"]
    )
    first = study["claimed"][0]
    claim = (
        f"At {first['wavelength_nm']:g} nm and up to {first['incident_rms_to_nm']:g} nm RMS, "
        f"taken together: {together}."
    )
    return ["### Right basin", "", *_table(columns, rows), "", claim]


def designs(study: dict[str, Any]) -> list[str]:
    """Floors of designs, and fits of the best of them."""
    columns = ["design", "images", "commands after the zero command / nm", "floor / nm RMS"]
    columns += ["95 % of wavefronts below / nm", "floor / default of two images"]
    rows = [
        (
            row["design"],
            str(row["images"]),
            ", ".join(_modes(command) for command in row["commands_opd_nm"][1:]) or "none",
            *_floor(row),
        )
        for row in study["designs"]
    ]
    adapted = study["adapted"]
    told = f"default, then the residual {_modes(adapted['third_residual_opd_nm'])}"
    rows.append(("adapted", str(adapted["images"]), told, *_floor(adapted)))
    fitted = [
        (
            ", ".join(_modes(command) for command in row["commands_opd_nm"][1:]),
            f"{row['right_basin']:,} of {row['trials']:,}",
            *_rate(row),
            _measured(row["ratio"], row["standard_error"]),
        )
        for row in study["fits"]
    ]
    of_fits = ("commands after the zero command / nm", "right basin", "rate", "95 %")
    return [
        "### Which commands lower the floor",
        "",
        *_table(columns, rows),
        "",
        *_table((*of_fits, "fit rms / floor"), fitted),
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _measured(value: float, standard_error: float, digits: int = 3) -> str:
    return f"{value:.{digits}f} ± {standard_error:.{digits}f}"


def _rate(row: dict[str, Any]) -> tuple[str, str]:
    return f"{100 * row['rate']:.1f} %", f"{100 * row['low']:.1f} to {100 * row['high']:.1f} %"


def _floor(row: dict[str, Any]) -> tuple[str, str, str]:
    return (
        _measured(row["floor_nm_rms"], row["standard_error_nm"]),
        f"{row['floor_95_nm']:.3f}",
        f"{row['floor_over_reference']:.3f}",
    )


def _modes(command_opd_nm: Sequence[float]) -> str:
    """A command by its modes in Noll's order, as ``Z4 +80``."""
    named = zip(NOLL_INDICES, command_opd_nm, strict=True)
    return " ".join(f"Z{mode} {value:+g}" for mode, value in named if value)
