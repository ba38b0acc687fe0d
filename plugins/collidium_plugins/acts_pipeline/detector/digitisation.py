"""Geometric digitisation with ACTS: a particle's path through a sensor is shared among the channels below.

Along a coordinate that is not measured, hits lie in the middle of the module, as in the hosted datasets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import acts.examples
import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.detector import layout
from collidium_plugins.acts_pipeline.detector.geometry import JSON, LOG_LEVEL, Detector, from_file


@dataclass(frozen=True, slots=True)
class Readout:
    """Readout of the sensors of a volume; lengths in mm."""

    pitches: tuple[float, ...]
    thickness: float
    digital: bool
    #: Standard deviation of each measured coordinate for clusters of 1, 2, … channels along it; the last
    #: value also applies to larger clusters.
    resolutions: tuple[tuple[float, ...], ...]


_ENDCAP_PIXELS: Final = Readout((0.050, 0.050), 0.125, False, ((0.01408, 0.01144), (0.01055, 0.00719)))
#: Along z, the reference has resolutions for clusters of up to four channels (6.63 µm). Tracks at small
#: angles to the beams make longer clusters: a noise of 0.01 mm of path in each of n channels of about 0.05 mm
#: moves the cluster's mean by 50 µm · 0.2 · √(n / 12). Measured with muons of 30 to 100 GeV: 7.4, 9.0, 11.4
#: and 14.0 µm for 5 to 6, 8, 14 and 22 channels.
_MAX_CHANNELS: Final = 64
_LONG: Final = tuple(
    math.hypot(0.00663, 0.010 * math.sqrt((size - 4) / 12)) for size in range(4, _MAX_CHANNELS + 1)
)
_PIXELS: Final = Readout(
    (0.050, 0.050), 0.125, False, ((0.01113, 0.00768), (0.01041, 0.00505, 0.00531, *_LONG))
)
_ENDCAP_SHORT_STRIPS: Final = Readout((0.080, 0.500), 0.2, True, ((0.02117, 0.00455), (0.12956, 0.01833)))
_SHORT_STRIPS: Final = Readout((0.080, 0.500), 0.2, True, ((0.01630, 0.01028), (0.11968, 0.07279, 0.06303)))
_ENDCAP_LONG_STRIPS: Final = Readout((0.125,), 0.25, True, ((0.03153, 0.01067),))
_LONG_STRIPS: Final = Readout((0.100,), 0.25, True, ((0.02105, 0.01545, 0.00978),))

#: Readout by volume. Source: ``config/odd-digi-geometric-config.json`` of the Open Data Detector (MPL-2.0),
#: which the production of the hosted events uses. Endcaps differ by 1%; both have the values of the positive.
READOUTS: Final[Mapping[int, Readout]] = {
    **dict.fromkeys((16, 18), _ENDCAP_PIXELS),
    17: _PIXELS,
    **dict.fromkeys((23, 25), _ENDCAP_SHORT_STRIPS),
    24: _SHORT_STRIPS,
    **dict.fromkeys((28, 30), _ENDCAP_LONG_STRIPS),
    29: _LONG_STRIPS,
}
#: Standard deviation along strips of each volume, mm: that of a uniform distribution.
_ALONG: Final = {
    volume.volume_id: volume.layers[0].modules[0].half_lengths[-1] / math.sqrt(3.0)
    for system in layout.systems()
    for volume in system.volumes
}
#: Minimum signal of a channel, which is the path length above it in mm, and relative noise of signals.
_THRESHOLD: Final = 0.01
_NOISE: Final = 0.01


#: Whiteboard entries by the options of ACTS for their names.
_OUTPUTS: Final = {
    "outputMeasurements": "measurements",
    "outputMeasurementSubset": "measured",
    "outputClusters": "clusters",
    "outputSimHitMeasurementsMap": "hit_measurements",
    "outputMeasurementSimHitsMap": "measurement_hits",
    "outputMeasurementParticlesMap": "measurement_particles",
    "outputParticleMeasurementsMap": "particle_measurements",
}
#: Factor of the standard deviations of measurements for seeding: ACTS requires the slopes of both halves of a
#: straight seed to agree within one standard deviation, which is underestimated for long clusters.
SEED_ERRORS: Final = 5.0
#: Prefix of the whiteboard entries with these measurements.
SEEDING: Final = "seeding_"


def digitisation(
    detector: Detector, hits: str, configuration: Callable[[float], Any], *, merge: bool = False
) -> list[Any]:
    """Return the algorithms that digitise ``hits``, for the fit and for seeding.

    Parameters
    ----------
    detector : Detector
    hits : str
        Whiteboard entry of the hits.
    configuration : callable
        Returns ACTS's digitisation configuration for a factor of standard deviations, as :func:`geometric`.
    merge : bool
        Whether to merge adjacent clusters of several particles into one measurement. Production does not.
    """
    return [
        acts.examples.DigitizationAlgorithm(
            level=LOG_LEVEL,
            digitizationConfigs=configuration(errors),
            surfaceByIdentifier=dict(detector.planes),
            randomNumbers=acts.examples.RandomNumbers(seed=1),  # the same, for equal positions
            inputSimHits=hits,
            doMerge=merge,
            minEnergyDeposit=0.0,  # hits have no deposits
            **{option: prefix + name for option, name in _OUTPUTS.items()},
        )
        for prefix, errors in (("", 1.0), (SEEDING, SEED_ERRORS))
    ]


def variances(volume: npt.NDArray[np.uint8], sizes: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the variances of measurements along both local coordinates.

    Parameters
    ----------
    volume : numpy.ndarray of uint8, shape (measurements,)
    sizes : numpy.ndarray of uint16, shape (measurements, 2)
        Channels of the clusters along both local coordinates.

    Returns
    -------
    numpy.ndarray of float32, shape (measurements, 2)
        mm²
    """
    found = np.empty(sizes.shape, np.float32)
    for volume_id, readout in READOUTS.items():
        there = volume == volume_id
        for axis, rms in enumerate((*readout.resolutions, (_ALONG[volume_id],))[:2]):
            found[there, axis] = np.square(rms)[np.clip(sizes[there, axis], 1, len(rms)) - 1]
    return found


def geometric(errors: float) -> Any:
    """Return ACTS's configuration of :data:`READOUTS`, with standard deviations multiplied by ``errors``."""
    return from_document(
        [
            (volume.volume_id, {"geometric": _readout(volume, errors)})
            for system in layout.systems()
            for volume in system.volumes
        ]
    )


def from_document(volumes: Sequence[tuple[int, Mapping[str, Any]]]) -> Any:
    """Return ACTS's digitisation configuration from the settings of each volume."""
    document = {
        "acts-geometry-hierarchy-map": {
            "format-version": 0,
            "value-identifier": "digitization-configuration",
        },
        "entries": [{"volume": volume, "value": value} for volume, value in volumes],
    }
    return from_file(document, JSON.readDigiConfigFromJson)


def _readout(volume: layout.Volume, errors: float) -> dict[str, Any]:
    readout = READOUTS[volume.volume_id]
    modules = [module.half_lengths for layer in volume.layers for module in layer.modules]
    halves = max(max(half[:-1]) for half in modules), max(half[-1] for half in modules)
    pitches = (*readout.pitches, 2.0 * halves[1])[:2]
    return {
        "digital": readout.digital,
        "indices": list(range(len(readout.resolutions))),
        "segmentation": {
            "binningdata": [_binning(*one) for one in zip(("binX", "binY"), halves, pitches, strict=True)]
        },
        "thickness": readout.thickness,
        "threshold": _THRESHOLD,
        "charge-smearing": {"mean": 0.0, "stddev": _NOISE, "type": "Gauss"},
        "variances": [
            {"index": index, "rms": [errors * one for one in rms]}
            for index, rms in enumerate(readout.resolutions)
        ],
    }


def _binning(axis: str, half: float, pitch: float) -> dict[str, Any]:
    """Bins of a whole number of channels; of an even number where the sensor is no multiple of the pitch."""
    bins = round(2.0 * half / pitch)
    if abs(bins * pitch - 2.0 * half) > 1e-6:
        bins += bins % 2
        half = 0.5 * bins * pitch
    return {"bins": bins, "min": -half, "max": half, "option": "open", "type": "equidistant", "value": axis}
