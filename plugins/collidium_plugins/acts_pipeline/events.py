"""What one stage hands to the next: the particles of an event, as arrays or as a row of an arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.datasets.schemas import SCHEMAS


@dataclass(frozen=True, slots=True, eq=False)
class Particles:
    """Particles of one event; every array has one entry per particle. Columns and units of the hosted table.

    Generated particles come first and have ``particle_id`` 1, 2, …, N in their order; what the detector
    simulation makes follows with N + 1, … and ``primary`` false. Among the generated ones are some that
    decayed in the generator (hadrons with b or c, K0S, hyperons, tau, W, Z, …): others name them as parent.
    """

    particle_id: npt.NDArray[np.uint64]
    pdg_id: npt.NDArray[np.int64]
    #: Mass and energy in GeV.
    mass: npt.NDArray[np.float32]
    energy: npt.NDArray[np.float32]
    #: In units of e.
    charge: npt.NDArray[np.float32]
    #: Momentum at the vertex, GeV.
    px: npt.NDArray[np.float32]
    py: npt.NDArray[np.float32]
    pz: npt.NDArray[np.float32]
    #: Vertex, mm, and its time, ns.
    vx: npt.NDArray[np.float32]
    vy: npt.NDArray[np.float32]
    vz: npt.NDArray[np.float32]
    time: npt.NDArray[np.float32]
    #: Whether it comes from the collision: not from the detector, nor from a K0S or a hyperon.
    primary: npt.NDArray[np.bool_]
    #: 1 is the hard scatter, 2 and up are pileup interactions.
    vertex_primary: npt.NDArray[np.uint16]
    #: ``particle_id`` of the nearest particle in the table that it comes from, -1 for none.
    parent_id: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.particle_id)

    @property
    def reach_detector(self) -> npt.NDArray[np.bool_]:
        """Of generated particles: which did not decay in the generator; shape (particles,)."""
        return ~np.isin(self.particle_id, self.parent_id[self.parent_id > 0].astype(np.uint64))


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedEvent:
    """Final-state particles of the hard scatter and of all pileup interactions of one event."""

    event_id: int
    particles: Particles


_HOSTED: Final = SCHEMAS["particles"]

#: One row is one event.
GENERATED_SCHEMA: Final = pa.schema(
    [_HOSTED.field("event_id"), *(_HOSTED.field(column.name) for column in fields(Particles))]
)


def to_table(events: Iterable[GeneratedEvent]) -> pa.Table:
    """One row of :data:`GENERATED_SCHEMA` per event."""
    events = list(events)
    ids = pa.array([event.event_id for event in events], pa.uint32())
    columns = [
        _lists([getattr(event.particles, field.name) for event in events], field.type)
        for field in list(GENERATED_SCHEMA)[1:]
    ]
    return pa.Table.from_arrays([ids, *columns], schema=GENERATED_SCHEMA)


def from_table(table: pa.Table) -> Iterator[GeneratedEvent]:
    """The events of a table that :func:`to_table` made."""
    names = [column.name for column in fields(Particles)]
    for batch in table.select(["event_id", *names]).to_batches():
        for row, event_id in enumerate(batch.column("event_id").to_numpy()):
            columns = {name: _entries(batch.column(name), row) for name in names}
            yield GeneratedEvent(int(event_id), Particles(**columns))


def _lists(arrays: Sequence[npt.NDArray[Any]], kind: pa.DataType) -> pa.Array[Any]:
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int32)
    entries = np.concatenate(arrays) if arrays else np.empty(0)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(entries)).cast(kind)


def _entries(column: pa.Array[Any], row: int) -> npt.NDArray[Any]:
    return pc.list_flatten(column.slice(row, 1)).to_numpy(zero_copy_only=False)
