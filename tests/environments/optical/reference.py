"""The image and its derivatives by the formula as it stands: whole pupil, complex matrices.

An oracle for what the package computes by the symmetry of pupil and detector.
It takes any OPD, tilts included, and either sign of the kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from probebench.environments.optical.propagation import Optics, Reals

Complexes = np.ndarray[tuple[int, ...], np.dtype[np.complex128]]


def plain_transform(pupil_field: Complexes, pixels: int, per_lambda: float, sign: int) -> Any:
    samples = pupil_field.shape[-1]
    position = (np.arange(samples) - (samples - 1) / 2) / samples
    pixel = (np.arange(pixels) - (pixels - 1) / 2) / per_lambda
    kernel = np.exp(sign * 2j * np.pi * np.outer(position, pixel))
    return kernel.T @ pupil_field @ kernel / (samples * per_lambda)


def plain_psf(
    opd_nm: Reals,
    pupil: Any,
    wavelength_nm: float,
    pixels: int,
    per_lambda: float,
    kernel_sign: int = -1,
) -> Reals:
    """Image of a (samples, samples) OPD over an open pupil."""
    field = pupil / np.sqrt(np.count_nonzero(pupil)) * np.exp(2j * np.pi / wavelength_nm * opd_nm)
    return np.asarray(np.abs(plain_transform(field, pixels, per_lambda, kernel_sign)) ** 2)


def plain_jacobian(
    optics: Optics, coefficients_nm: Reals, wavelength_nm: float, pixels: int, per_lambda: float
) -> Reals:
    """Derivatives of the image, (6, pixels, pixels) per nm, from mode times pupil field."""
    phase = 2j * np.pi / wavelength_nm
    opd_nm = np.tensordot(coefficients_nm, optics.modes, axes=1)
    field = optics.pupil / np.sqrt(np.count_nonzero(optics.pupil)) * np.exp(phase * opd_nm)
    image = plain_transform(field, pixels, per_lambda, -1)
    slopes = [
        plain_transform(phase * mode * field, pixels, per_lambda, -1) for mode in optics.modes
    ]
    return np.array([2 * (np.conj(image) * slope).real for slope in slopes])
