"""What a request says of the instrument: words and numbers, all public."""

from __future__ import annotations

from functools import lru_cache

from probebench.environments.optical.camera import Calibration
from probebench.environments.optical.modes import MODE_NAMES, NOLL_INDICES
from probebench.environments.optical.starts import disclosure as estimator_disclosure
from probebench.kernel.canonical import Json
from probebench.wire import optical as wire

ROW_ORDER = "electrons[0] is the bottom row of the image; within a row, columns run left to right"

MODE_NORMALISATION = (
    "Gram-Schmidt in this order on the sampled, obscured pupil, against piston, tip, tilt and one another; "
    "each mode has zero mean and unit RMS over the pupil, so a coefficient is nm RMS of OPD"
)
SAMPLING = (
    "along each axis sample i of N, from 0, is at (i - (N-1)/2) / (N/2) pupil radii; it is open where its "
    "centre lies between obscuration and 1, both included, from the pupil's centre"
)
ORIENTATION = (
    "Pupil and image share their axes: x to the right, y up. A tilt whose OPD grows with +y moves the image "
    "to +y, towards higher rows. The optical axis is at row and column (n-1)/2, counted from 0."
)
NOISE_MODEL = (
    "electrons = Poisson(expected electrons of the pixel) + Gaussian(0, read_noise_e), signed; light that falls "
    "outside the detector is lost; all exposures have the same expected photons"
)
COMMAND_CONVENTION = (
    "Commands are absolute, not increments. Residual OPD = incident OPD - commanded OPD; the pupil field is "
    "exp(+2 pi i OPD / wavelength). A reflective surface moves by half the commanded OPD."
)


@lru_cache(maxsize=8)
def instrument(calibration: Calibration) -> Json:
    """The public calibration of the camera."""
    described = wire.Instrument(
        wavelength_nm=calibration.wavelength_nm,
        pupil=wire.Pupil(
            shape="circle with a concentric circular obscuration",
            samples=calibration.pupil_samples,
            sampling=SAMPLING,
            obscuration=calibration.obscuration,
        ),
        modes=[
            wire.Mode(index=index, noll=noll, name=name)
            for index, (noll, name) in enumerate(zip(NOLL_INDICES, MODE_NAMES, strict=True))
        ],
        mode_normalisation=MODE_NORMALISATION,
        rows=calibration.pixels,
        columns=calibration.pixels,
        samples_per_lambda_over_d=calibration.samples_per_lambda_over_d,
        orientation=ORIENTATION,
        photons_per_exposure=calibration.photons_per_exposure,
        read_noise_e=calibration.read_noise_e,
        noise_model=NOISE_MODEL,
        command_unit="nm OPD",
        command_bound_nm=calibration.command_bound_nm,
        command_convention=COMMAND_CONVENTION,
    )
    return described.model_dump()


@lru_cache(maxsize=8)
def estimator(calibration: Calibration) -> Json:
    """The starts, bounds and iteration allowance of the supplied estimator."""
    return estimator_disclosure(calibration).model_dump()
