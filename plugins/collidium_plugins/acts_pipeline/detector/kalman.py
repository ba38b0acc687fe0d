"""The baseline ``ckf`` of the tracking task: ACTS's combinatorial Kalman filter on measured hits.

It stands here since tasks do not have ACTS; the task gets it by the hook ``collidium_baselines``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import acts.arrow
import acts.examples
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event
from collidium_plugins.acts_pipeline.detector import geometry
from collidium_plugins.acts_pipeline.detector.algorithms import (
    Algorithms,
    columns,
    hit_container,
    track_converter,
)
from collidium_plugins.acts_pipeline.detector.digitisation import READOUTS, digitisation, from_document
from collidium_plugins.acts_pipeline.detector.geometry import Detector
from collidium_plugins.acts_pipeline.detector.tracking import track_finding

_COLUMNS: Final = ("x", "y", "z", "volume_id", "layer_id", "surface_id")

Columns = Mapping[str, npt.NDArray[Any]]


def reconstruct(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Find the tracks of every event in ``tracker_hits``.

    Parameters
    ----------
    tables : mapping of str to pyarrow.Table
        ``tracker_hits`` needs x, y, z (mm), and volume_id, layer_id and surface_id of this pipeline.

    Returns
    -------
    pyarrow.Table
        event_id, hit_id and track_id, one row per hit; track_id is -1 for hits without a track.

    Raises
    ------
    ValueError
        If a hit is on a module that this pipeline does not have.
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
    """Return the number of the track of each hit of an event, or -1."""
    detector, algorithms = _reconstruction()
    modules = geometry.identifier(hits["volume_id"], hits["layer_id"], hits["surface_id"])
    if not np.isin(modules, detector.modules).all():
        raise ValueError("tracker_hits has hits of modules that the pipeline acts does not have")
    order = np.argsort(modules, kind="stable")
    numbers = np.full(len(order), -1, np.int64)
    if len(order):
        directions = np.tile([0.0, 0.0, 1.0], (len(order), 1))  # any: measurements do not depend on them
        positions = _on_planes(detector, hits, modules)
        container = hit_container(detector, modules[order], positions[order], directions)
        found = columns(algorithms.run(0, 0, hits=container)["track_table"])
        tracks = np.repeat(np.arange(len(found["hit_ids.lengths"])), found["hit_ids.lengths"])
        numbers[order[found["hit_ids"]]] = tracks
    return numbers


def _on_planes(detector: Detector, hits: Columns, modules: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Project hits, which have single precision, onto the planes of their modules; shape (hits, 3)."""
    place = np.searchsorted(detector.modules, modules)
    position = np.stack([hits[axis].astype(np.float64) for axis in "xyz"], axis=1)
    normal = detector.normals[place]
    position -= normal * ((position - detector.centres[place]) * normal).sum(axis=1)[:, None]
    return position


@cache
def _reconstruction() -> tuple[Detector, Algorithms]:
    detector = geometry.build()
    return detector, Algorithms(
        [
            *digitisation(detector, "hits", _exact),
            *track_finding(detector, "measured", "tracks"),
            track_converter(),
        ],
        inputs={"hits": acts.examples.SimHitContainer},
        outputs={"track_table": acts.arrow.ArrowTable},
    )


def _exact(errors: float) -> Any:
    """Return ACTS's digitisation configuration that keeps positions, as the hits are already measured.

    Standard deviations are the modules' pitches over √12, multiplied by ``errors``.
    """

    def smearing(index: int, pitch: float) -> dict[str, object]:
        return {"index": index, "mean": 0.0, "stddev": errors * pitch / math.sqrt(12.0), "type": "Exact"}

    return from_document(
        [
            (volume, {"smearing": [smearing(*direction) for direction in enumerate(readout.pitches)]})
            for volume, readout in READOUTS.items()
        ]
    )
