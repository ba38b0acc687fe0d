"""Refit of tracks as electrons with ACTS's Gaussian-sum filter (GSF).

Energy losses by bremsstrahlung are modelled by a mixture of Gaussians.

The mixture is that of Bethe and Heitler in ranges of thickness. ACTS's parametrisation is a file that its
wheel lacks, made for another detector.
"""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import pairwise
from typing import Any, Final

import acts.examples
import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.detector.geometry import LOG_LEVEL, Detector, from_file

#: Upper edges of the components in z, the fraction of its energy that an electron retains.
_EDGES: Final = (1.0, 0.99, 0.95, 0.85, 0.65, 0.4)
#: Edges of the ranges of thickness, in radiation lengths, that share a mixture; the first has one Gaussian.
_THICKNESSES: Final = (0.0, *np.geomspace(0.002, 0.5, 60).tolist())
_TERMS: Final = np.arange(60)
_FACTORIALS: Final = np.array([math.factorial(term) for term in _TERMS], np.float64)


def refit(detector: Detector, found: str, tracks: str, components: int) -> Any:
    """Return the ACTS algorithm that refits the tracks ``found`` with up to ``components`` components."""
    examples = acts.examples
    fit = examples.makeGsfFitterFunction(
        detector.tracking_geometry,
        detector.field,
        _losses(),
        maxComponents=components,
        weightCutoff=1e-4,
        componentMergeMethod=examples.ComponentMergeMethod.maxWeight,
        mixtureReductionAlgorithm=examples.MixtureReductionAlgorithm.KLDistance,
        reverseFilteringCovarianceScaling=100.0,
        level=LOG_LEVEL,
    )
    return examples.RefittingAlgorithm(
        level=LOG_LEVEL, inputTracks=found, outputTracks=tracks, fit=fit, initialVarInflation=[1.0] * 6
    )


def mixture(thickness: float) -> npt.NDArray[np.float64]:
    """Return a mixture that approximates the Bethe-Heitler distribution of z.

    Parameters
    ----------
    thickness : float
        In radiation lengths.

    Returns
    -------
    numpy.ndarray of float, shape (components, 3)
        Weight, mean and variance of each component.

    References
    ----------
    R. Frühwirth, Computer Physics Communications 154 (2003) 131: -ln z follows a gamma distribution with
    shape thickness / ln 2. Components are slices of it.
    """
    shape = thickness / math.log(2.0)
    depth = -np.log(_EDGES)
    zeroth, first, second = (
        (power + 1) ** -shape * np.diff([*(_gamma(shape, (power + 1) * edge) for edge in depth), 1.0])
        for power in range(3)
    )
    mean = first / zeroth
    return np.stack([zeroth, mean, second / zeroth - mean**2], axis=1)


def _gamma(shape: float, upper: float) -> float:
    """Cumulative gamma distribution, by its power series."""
    series = (-upper) ** _TERMS / (_FACTORIALS * (shape + _TERMS))
    return float(upper**shape * series.sum() / math.gamma(shape))


@cache
def _losses() -> Any:
    """Mixtures in ACTS's format: polynomials of order 0 in ranges of thickness."""
    names = ("weight_coeffs", "mean_coeffs", "var_coeffs")
    ranges = [
        {
            "low_x0": low,
            "high_x0": high,
            "transform": False,
            "components": [
                {name: [value] for name, value in zip(names, component, strict=True)}
                for component in mixture((low + high) / 2).tolist()
            ],
        }
        for low, high in pairwise(_THICKNESSES)
    ]
    load = acts.examples.loadBetheHeitlerApproxFromJson
    limits = {"clamp_to_range": True, "no_change_limit": 1e-4, "single_gaussian_limit": 0.002}
    return from_file({"ranges": ranges}, partial(load, **limits))
