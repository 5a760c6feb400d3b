"""The figures of the camera's benchmark as tables, and what stands in the way of a target."""

from __future__ import annotations

from typing import Any

from scripts.benchmarks.timing import PROBE

OURS, FIT, ONE_START = "probebench", "nine-start fit", "one start"
RETRIEVE, SOLVE = "solvephase retrieve", 'solvephase solve(method="lm")'
TANGENT = "of the pupil field, the tangents"


def markdown(document: dict[str, Any]) -> list[str]:
    """The document as tables."""
    lines = [
        "| what | size | times as fast: median | quartiles | target | |",
        "|---|---|---|---|---|---|",
    ]
    for row in document["targets"]:
        ratio = row["ratio"]
        quartiles = f"{ratio['q1']:.1f} to {ratio['q3']:.1f}"
        lines.append(
            f"| {row['what']} | {row['size']} | {ratio['median']:.1f} | {quartiles} "
            f"| {row['target']:g} | {row['verdict']} |"
        )
    lines += ["", "| image of | size | ms | largest difference, of the peak |", "|---|---|---|---|"]
    for size, figures in document["sizes"].items():
        psf = figures["psf"]
        for name in (OURS, *psf["agreement_of_peak"]):
            difference = psf["agreement_of_peak"].get(name)
            shown = "" if difference is None else f"{difference:.1e}"
            lines.append(f"| {name} | {size} | {psf['ms'][name]['median']:.3f} | {shown} |")
    lines += [
        "",
        "| fit by | size | ms | largest difference, standard deviations |",
        "|---|---|---|---|",
    ]
    for size, figures in document["sizes"].items():
        fitted = figures["fit"]
        for name in (FIT, RETRIEVE, ONE_START, SOLVE):
            difference = fitted["largest_difference_sigma"].get(name)
            shown = "" if difference is None else f"{difference['median']:.3f}"
            lines.append(f"| {name} | {size} | {fitted['ms'][name]['median']:.2f} | {shown} |")
    lines += ["", "| package | where its pixels are |", "|---|---|"]
    lines += [f"| {name} | {words} |" for name, words in document["conventions"].items()]
    return [*lines, "", *profile(document), "", *obstacles(document)]


def profile(document: dict[str, Any]) -> list[str]:
    """Where the time of an image and of a fit goes, and how noisy the machine was."""
    lines = ["| step | " + " | ".join(document["sizes"]) + " |"]
    lines.append("|---" * (1 + len(document["sizes"])) + "|")
    all_figures = document["sizes"].values()
    first = next(iter(all_figures))
    for step in first["psf"]["profile_ms"]:
        times = [f"{f['psf']['profile_ms'][step]['median']:.3f} ms" for f in all_figures]
        lines.append(f"| {step} | " + " | ".join(times) + " |")
    for name in ("objective", "derivatives"):
        shown = []
        for figures in all_figures:
            fitted = figures["fit"]["profile"]
            calls, ms = fitted["evaluations"][FIT][name], fitted["ms"][name]["median"]
            shown.append(f"{calls} of {ms:.3f} ms")
        lines.append(f"| {name} in a nine-start fit of two images | " + " | ".join(shown) + " |")
    lines.append("")
    for size, figures in document["sizes"].items():
        ms = figures["psf"]["ms"][PROBE]
        spread = 100 * (ms["q3"] - ms["q1"]) / ms["median"]
        lines.append(f"Noise at {size}: the quartiles of a fixed load lay {spread:.0f} % apart.")
    return lines


def obstacles(document: dict[str, Any]) -> list[str]:
    """For each row that missed its target, the measurement that shows what it would take."""
    missed = [row for row in document["targets"] if row["verdict"] == "missed"]
    if not missed:
        return []
    kernel = document["fused_kernel"]
    numba_s = kernel["import_numba_s"]["median"]
    words = (
        "What stands in the way of the rows that missed. A fused kernel in numba would be faster "
        f"(docs/adr/0005), but `import numba` took {numba_s:.1f} s here, and the camera must have "
        "made an image before the first request, which has 1.5 s in all. "
        f"{_of_the_tangent(kernel)}"
    )
    lines = [
        words,
        "",
        "| what | size | ms | ms for the target | where the time goes |",
        "|---|---|---|---|---|",
    ]
    for row in missed:
        figures = document["sizes"][row["size"]]
        one_image = row["ours"] not in figures["fit"]["ms"]
        group, name = ("psf", OURS) if one_image else ("fit", row["ours"])
        ms = figures[group]["ms"][name]["median"]
        allowed_ms = ms * row["ratio"]["median"] / row["target"]
        words = _of_an_image(figures) if one_image else _of_a_fit(figures, row["ours"])
        lines.append(f"| {row['what']} | {row['size']} | {ms:.3f} | {allowed_ms:.3f} | {words} |")
    return lines


def _of_the_tangent(kernel: dict[str, Any]) -> str:
    if kernel["vector_tangent"]:
        return "NumPy computes tangents with AVX-512 here."
    return (
        "This processor has no AVX-512, for which alone NumPy has a vector tangent in double "
        "precision; sine and cosine take longer still."
    )


def _of_an_image(figures: dict[str, Any]) -> str:
    step = {name: ms["median"] for name, ms in figures["psf"]["profile_ms"].items()}
    return (
        f"tangents {step[TANGENT]:.3f} ms, the three real matrix products of the transform "
        f"{step['transform']:.3f} ms: {step[TANGENT] + step['transform']:.3f} ms before anything else"
    )


def _of_a_fit(figures: dict[str, Any], ours: str) -> str:
    fitted = figures["fit"]["profile"]
    runs = fitted["evaluations"][ours]
    spent = {name: calls * fitted["ms"][name]["median"] for name, calls in runs.items()}
    image_ms = 2 * figures["psf"]["ms"][OURS]["median"]
    return (
        f"{runs['objective']} objectives {spent['objective']:.1f} ms, of which "
        f"{runs['objective'] * image_ms:.1f} ms are their images; {runs['derivatives']} derivatives "
        f"{spent['derivatives']:.1f} ms; SciPy's steps are the rest"
    )
