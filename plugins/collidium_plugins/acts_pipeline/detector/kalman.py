"""The Kalman filter on measured hits: the baseline ``ckf`` of tracking, for events without tracks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import acts
import acts.arrow
import acts.examples
import acts.fatras
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event
from collidium_plugins.acts_pipeline.detector import geometry
from collidium_plugins.acts_pipeline.detector.algorithms import Algorithms, columns
from collidium_plugins.acts_pipeline.detector.digitisation import READOUTS, digitisation, from_document
from collidium_plugins.acts_pipeline.detector.geometry import ARROW, LOG_LEVEL, Detector
from collidium_plugins.acts_pipeline.detector.tracking import track_finding

_COLUMNS: Final = ("x", "y", "z", "volume_id", "layer_id", "surface_id")

Columns = Mapping[str, npt.NDArray[Any]]


def reconstruct(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tracks of every event in ``tracker_hits``: x, y, z (mm), volume_id, layer_id and surface_id.

    Ids are those of this pipeline. Returns event_id, hit_id and track_id, one row per hit; -1 for hits of no
    track. Raises ValueError for hits of modules that this pipeline does not have.
    """
    table = tables["tracker_hits"]
    lengths = list_lengths(table, "x")
    with_ids = "hit_id" in table.column_names
    flat = flatten(table, [*_COLUMNS, *(["hit_id"] if with_ids else [])])
    hits = {name: np.asarray(flat.column(name)) for name in flat.column_names}
    track_id = np.full(len(flat), -1, np.int64)
    for stop, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
        rows = slice(stop - length, stop)
        numbers = _track_numbers({name: values[rows] for name, values in hits.items()})
        track_id[rows] = np.where(numbers < 0, -1, int(hits["event_id"][rows][:1].sum()) * 2**20 + numbers)
    ids = hits["hit_id"] if with_ids else positions_in_event(lengths)
    return pa.table({"event_id": hits["event_id"], "hit_id": ids, "track_id": track_id})


def _track_numbers(hits: Columns) -> npt.NDArray[np.int64]:
    """Number of the track of each hit of an event, or -1."""
    detector, algorithms = _filter()
    modules = geometry.identifier(hits["volume_id"], hits["layer_id"], hits["surface_id"])
    if not np.isin(modules, detector.modules).all():
        raise ValueError("tracker_hits has hits of modules that the pipeline acts does not have")
    order = np.argsort(modules, kind="stable")  # that of the container
    numbers = np.full(len(order), -1, np.int64)
    if len(order):
        found = columns(algorithms.run(0, 0, hits=_container(detector, hits, modules, order))["track_table"])
        tracks = np.repeat(np.arange(len(found["hit_ids.lengths"])), found["hit_ids.lengths"])
        numbers[order[found["hit_ids"]]] = tracks
    return numbers


def _container(
    detector: Detector, hits: Columns, modules: npt.NDArray[np.uint64], order: npt.NDArray[np.intp]
) -> Any:
    """Hits on the planes of their modules, where ACTS expects them to a ten thousandth of a millimetre."""
    place = np.searchsorted(detector.modules, modules)
    position = np.stack([hits[axis].astype(np.float64) for axis in "xyz"], axis=1)
    normal = detector.normals[place]
    position -= normal * ((position - detector.centres[place]) * normal).sum(axis=1)[:, None]
    container, hit, vector = acts.examples.SimHitContainer(), acts.examples.SimHit, acts.Vector4
    no_particle, no_momentum = acts.fatras.Barcode(), acts.Vector4(0.0, 0.0, 1.0, 1.0)
    for module, (x, y, z) in zip(modules[order].tolist(), position[order].tolist(), strict=True):
        container.insert(
            hit(detector.ids[module], no_particle, vector(x, y, z, 0.0), no_momentum, no_momentum)
        )
    return container


@cache
def _filter() -> tuple[Detector, Algorithms]:
    """The detector and the algorithms; some seconds."""
    detector = geometry.build()
    convert = ARROW.ArrowTrackOutputConverter(
        level=LOG_LEVEL,
        inputTracks="tracks",
        inputMeasurementSimHitsMap="measurement_hits",
        outputTable="track_table",
    )
    return detector, Algorithms(
        [*digitisation(detector, "hits", _exact), *track_finding(detector, "measured", "tracks"), convert],
        inputs={"hits": acts.examples.SimHitContainer},
        outputs={"track_table": acts.arrow.ArrowTable},
    )


def _exact(errors: float) -> Any:
    """Return ACTS's configuration for measurements where hits lie, as they are measured already.

    They are as exact as the pitches of their modules.
    """

    def smearing(index: int, pitch: float) -> dict[str, object]:
        return {"index": index, "mean": 0.0, "stddev": errors * pitch / math.sqrt(12.0), "type": "Exact"}

    return from_document(
        [
            (volume, {"smearing": [smearing(*direction) for direction in enumerate(readout.pitches)]})
            for volume, readout in READOUTS.items()
        ]
    )
