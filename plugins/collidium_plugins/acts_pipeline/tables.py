"""The tables of reconstructed events in the hosted format: particles, tracker hits, measurements, tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import nested
from collidium.datasets.schemas import EXTENDED
from collidium.physics import Helix
from collidium_plugins.acts_pipeline.events import COVARIANCE, Floats, Particles, ReconstructedEvent, lists

#: One array per event.
Arrays = Sequence[npt.NDArray[Any]]


def particles(events: Sequence[ReconstructedEvent], num_calo_hits: Arrays, field: float) -> pa.Table:
    """Return table ``particles``; ``num_calo_hits`` has one entry per particle, ``field`` is in tesla."""
    perigees = [perigee(event.particles, field) for event in events]
    computed: dict[str, Arrays | pa.Array[Any]] = {
        "perigee_d0": [d0 for d0, _ in perigees],
        "perigee_z0": [z0 for _, z0 in perigees],
        "num_tracker_hits": [_num_tracker_hits(event) for event in events],
        "num_calo_hits": num_calo_hits,
    }
    return _table("particles", events, [event.particles for event in events], computed)


def tracker_hits(events: Sequence[ReconstructedEvent]) -> pa.Table:
    """Return table ``tracker_hits``."""
    return _table("tracker_hits", events, [event.hits for event in events])


def measurements(events: Sequence[ReconstructedEvent]) -> pa.Table:
    """Return table ``measurements``."""
    return _table("measurements", events, [event.measurements for event in events])


def tracks(events: Sequence[ReconstructedEvent]) -> pa.Table:
    """Return table ``tracks``; tracks are numbered from 0 in each event."""
    parts = [event.tracks for event in events]
    computed: dict[str, Arrays | pa.Array[Any]] = {
        "track_id": [np.arange(len(part), dtype=np.uint16) for part in parts],
        "covariance": _lists_of_lists(
            [np.full(len(part), COVARIANCE, np.int32) for part in parts],
            [part.covariance for part in parts],
        ),
        "hit_ids": _lists_of_lists([part.num_hits for part in parts], [part.hit_ids for part in parts]),
    }
    return _table("tracks", events, parts, computed)


def _table(
    name: str,
    events: Sequence[ReconstructedEvent],
    parts: Sequence[Any],
    computed: Mapping[str, Arrays | pa.Array[Any]] = MappingProxyType({}),
) -> pa.Table:
    """Return a table with one row per event; columns are ``computed``, or attributes of ``parts``."""
    schema = EXTENDED[name]
    columns: list[pa.Array[Any]] = [pa.array([event.event_id for event in events], pa.uint32())]
    for field in list(schema)[1:]:
        column = computed.get(field.name)
        if column is None:
            column = [getattr(part, field.name) for part in parts]
        columns.append(column.cast(field.type) if isinstance(column, pa.Array) else lists(column, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _lists_of_lists(lengths: Arrays, entries: Arrays) -> pa.Array[Any]:
    """Return lists of lists from the ``lengths`` of the inner lists and the ``entries`` of each event."""
    each = np.concatenate([np.empty(0, np.int32), *lengths])
    inner = nested(each, np.concatenate(entries) if entries else np.empty(0, np.float32))
    return nested([len(one) for one in lengths], inner)


def _num_tracker_hits(event: ReconstructedEvent) -> npt.NDArray[np.uint16]:
    counts = np.bincount(event.hits.particle_id.astype(np.int64), minlength=len(event.particles) + 1)
    return counts[1:].astype(np.uint16)


def perigee(particles: Particles, field: float) -> tuple[Floats, Floats]:
    """Return d0 and z0 of particles, mm, at the point of closest approach to the z axis.

    ``field`` is in tesla, along z.
    """
    columns = {name: getattr(particles, name) for name in ("px", "py", "pz", "vx", "vy", "vz", "charge")}
    d0, z0, _ = Helix.from_particles(columns, field).perigee()
    return d0.astype(np.float32), z0.astype(np.float32)
