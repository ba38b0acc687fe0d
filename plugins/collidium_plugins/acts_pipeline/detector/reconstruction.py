"""Reconstruction of simulated events: digitisation, track finding and track fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import acts.arrow
import acts.examples
import numpy as np
import numpy.typing as npt

from collidium.order import NOMINAL, Variation
from collidium_plugins.acts_pipeline import seeds
from collidium_plugins.acts_pipeline.detector import digitisation, gaussian_sum, geometry
from collidium_plugins.acts_pipeline.detector.algorithms import (
    Algorithms,
    columns,
    hit_container,
    track_converter,
)
from collidium_plugins.acts_pipeline.detector.geometry import ARROW, GEV, LOG_LEVEL, Detector
from collidium_plugins.acts_pipeline.detector.tracking import track_finding
from collidium_plugins.acts_pipeline.detector.variation import HitVariation
from collidium_plugins.acts_pipeline.events import (
    Measurements,
    ReconstructedEvent,
    SimulatedEvent,
    SimulatedHits,
    TrackerHits,
    Tracks,
)

#: Values of the hosted column ``detector`` by volume: negative endcap, barrel and positive endcap of pixels,
#: short and long strips.
DETECTORS: Final[Mapping[int, int]] = {16: 0, 17: 1, 18: 2, 23: 3, 24: 4, 25: 5, 28: 6, 29: 7, 30: 8}

Indices = npt.NDArray[np.int64]


class Reconstruction:
    """Digitises and reconstructs simulated events, with the nominal ``detector``."""

    def __init__(self, detector: Detector, variation: Variation = NOMINAL) -> None:
        self._detector, self._variation = detector, HitVariation(detector, variation)
        self._merges, refits = variation.merge > 0, int(variation.gsf)
        self._algorithms = Algorithms(
            [
                *digitisation.digitisation(detector, "hits", digitisation.geometric, merge=self._merges),
                *track_finding(detector, "measured", "fitted" if refits else "tracks"),
                *([gaussian_sum.refit(detector, "fitted", "tracks", refits)] if refits else []),
                ARROW.ArrowSimHitOutputConverter(
                    level=LOG_LEVEL,
                    inputSimHits="hits",
                    inputClusters="clusters",
                    inputSimHitMeasurementsMap="hit_measurements",
                    outputTable="hit_table",
                ),
                track_converter(),
            ],
            inputs={"hits": acts.examples.SimHitContainer},
            outputs={
                "hit_table": acts.arrow.ArrowTable,
                "track_table": acts.arrow.ArrowTable,
                "clusters": acts.examples.ClusterContainer,
                "tracks": acts.examples.ConstTrackContainer,
                "measurement_hits": acts.examples.MeasurementSimHitsMap,
            },
        )

    def reconstruct(self, event: SimulatedEvent, seed: int) -> ReconstructedEvent:
        """Reconstruct an event; random numbers depend on seed and event id. Raises StageFailed."""
        random = seeds.for_acts("digitisation", seed, event.event_id)
        crossings, positions = self._variation.apply(event.crossings, seed, event.event_id)
        modules = geometry.identifier(crossings.volume_id, crossings.layer_id, crossings.surface_id)
        directions = np.stack([crossings.dx, crossings.dy, crossings.dz], axis=1)
        container = hit_container(self._detector, modules, positions, directions)
        result = self._algorithms.run(event.event_id, random, hits=container)
        measured = columns(result["hit_table"])
        kept = np.flatnonzero(np.isfinite(measured["x"]))
        order = hit_of = np.arange(len(kept))  # without merging, measurements and hits have the same order
        if self._merges:
            kept, order, hit_of = merged(list(result["measurement_hits"]))
        hits = _hits(crossings, measured, kept)
        measurements = self._measurements(hits, result["clusters"], order)
        tracks = _tracks(columns(result["track_table"]), result["tracks"], hit_of, hits.particle_id)
        return ReconstructedEvent(event.event_id, event.particles, event.ends, hits, measurements, tracks)

    def _measurements(self, hits: TrackerHits, clusters: Any, order: Indices) -> Measurements:
        sizes = np.array([(one.sizeLoc0, one.sizeLoc1) for one in clusters], np.uint16).reshape(-1, 2)[order]
        variances = digitisation.variances(hits.volume_id, sizes)
        ids = geometry.identifier(hits.volume_id, hits.layer_id, hits.surface_id)
        module = np.searchsorted(self._detector.modules, ids)
        first = self._detector.axes[module]
        second = np.cross(self._detector.normals[module], first)
        offset = np.stack([hits.x, hits.y, hits.z], axis=1) - self._detector.centres[module]
        x, y = (np.einsum("ij,ij->i", offset, axis).astype(np.float32) for axis in (first, second))
        return Measurements(x, y, *variances.T.copy(), *sizes.T.copy())


def merged(measurement_hits: Sequence[tuple[int, int]]) -> tuple[Indices, Indices, Indices]:
    """Select hits among crossings that share merged measurements: the first crossing of each measurement.

    Parameters
    ----------
    measurement_hits : sequence of tuple
        Pairs of a measurement and a crossing.

    Returns
    -------
    tuple of numpy.ndarray
        The crossings that become hits, the measurement of each hit, and the hit of each measurement.
    """
    measurement, crossing = np.array(measurement_hits, np.int64).reshape(-1, 2).T
    first = np.full(measurement.max(initial=-1) + 1, crossing.max(initial=0))
    np.minimum.at(first, measurement, crossing)
    kept, order, hit_of = np.unique(first, return_index=True, return_inverse=True)
    return kept, order, hit_of


def _hits(crossings: SimulatedHits, measured: Mapping[str, npt.NDArray[Any]], kept: Indices) -> TrackerHits:
    of_volume = np.zeros(256, np.uint8)
    of_volume[list(DETECTORS)] = list(DETECTORS.values())
    volume = crossings.volume_id[kept]
    return TrackerHits(
        x=measured["x"][kept],
        y=measured["y"][kept],
        z=measured["z"][kept],
        true_x=crossings.x[kept].astype(np.float32),
        true_y=crossings.y[kept].astype(np.float32),
        true_z=crossings.z[kept].astype(np.float32),
        time=crossings.time[kept],
        particle_id=crossings.particle_id[kept],
        volume_id=volume,
        layer_id=crossings.layer_id[kept],
        surface_id=crossings.surface_id[kept],
        detector=of_volume[volume],
    )


def _tracks(
    found: Mapping[str, npt.NDArray[Any]],
    fitted: Any,
    hit_of: Indices,
    owners: npt.NDArray[np.uint64],
) -> Tracks:
    """Return the tracks; ``hit_of`` is the hit of each measurement, ``owners`` the particle of each hit."""
    rows, places = np.tril_indices(5)
    units = np.array([1.0, 1.0, 1.0, 1.0, GEV])  # the last parameter is q/p
    covariance = fitted.covariance.reshape(-1, 6, 6)[:, rows, places] * (units[rows] * units[places])
    hit_ids = hit_of[found["measurement_ids"]].astype(np.uint32)
    counts = found["measurement_ids.lengths"].astype(np.uint16)
    return Tracks(
        d0=found["d0"],
        z0=found["z0"],
        phi=found["phi"],
        theta=found["theta"],
        qop=(found["qop"] * GEV).astype(np.float32),
        majority_particle_id=majority(owners[hit_ids], counts),
        chi2=fitted.chi2,
        num_holes=fitted.nHoles.astype(np.uint8),
        num_outliers=fitted.nOutliers.astype(np.uint8),
        covariance=covariance.astype(np.float32).ravel(),
        num_hits=counts,
        hit_ids=hit_ids,
    )


def majority(owners: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint64]:
    """Return the particle with most hits of each track; of several particles the one with the smallest id.

    Parameters
    ----------
    owners : numpy.ndarray of uint64, shape (hits,)
        Particles of the hits of all tracks, track by track.
    counts : numpy.ndarray of uint16, shape (tracks,)
        Hits of each track, at least one.
    """
    track = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((owners, track))
    track, owners = track[order], owners[order]
    begins = np.ones(len(owners), np.bool_)
    begins[1:] = (track[1:] != track[:-1]) | (owners[1:] != owners[:-1])
    group = np.flatnonzero(begins)
    hits = np.diff(group, append=len(owners))
    best = group[np.lexsort((owners[group], -hits, track[group]))]
    return owners[best[np.unique(track[best], return_index=True)[1]]]
