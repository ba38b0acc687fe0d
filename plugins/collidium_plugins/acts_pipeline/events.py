"""Events as the stages exchange them: dataclasses of arrays, and rows of arrow tables.

There is one class for each stage: generated, simulated and reconstructed events. Later stages do not change
generated particles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import nested
from collidium.datasets.schemas import EXTENDED, SCHEMAS

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Base class of dataclasses whose fields are arrays of equal length."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def select(self, index: npt.NDArray[Any]) -> Self:
        """Select entries by a mask or by indices."""
        return type(self)(*(getattr(self, column.name)[index] for column in fields(self)))

    @classmethod
    def concatenate(cls, parts: Iterable[Columns]) -> Self:
        parts = list(parts)
        return cls(
            *(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls))
        )


@dataclass(frozen=True, slots=True, eq=False)
class Particles(Columns):
    """Particles of one event, with the columns and units of the hosted table.

    Generated particles come first, with ``particle_id`` 1, 2, …, N. Particles made by the detector simulation
    follow with N + 1, … and ``primary`` false. A generated particle that is the parent of another generated
    particle has decayed in the generator.
    """

    particle_id: npt.NDArray[np.uint64]
    pdg_id: npt.NDArray[np.int64]
    #: Mass and energy in GeV.
    mass: Floats
    energy: Floats
    #: In units of e.
    charge: Floats
    #: Momentum at the vertex, GeV.
    px: Floats
    py: Floats
    pz: Floats
    #: Vertex, mm, and its time, ns.
    vx: Floats
    vy: Floats
    vz: Floats
    time: Floats
    primary: npt.NDArray[np.bool_]
    #: 1 is the hard scatter, 2 and up are pileup interactions.
    vertex_primary: npt.NDArray[np.uint16]
    parent_id: npt.NDArray[np.int64]


#: Fate of a particle in the tracker. Not simulated: it decayed in the generator, is invisible or too slow.
NOT_SIMULATED: Final = 0
#: It left the tracker, or curls back within it.
LEFT: Final = 1
#: It stopped, interacted, decayed or converted in the tracker.
ENDED: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Final state of each particle in the tracker simulation; 0 for particles that were not simulated."""

    #: ``NOT_SIMULATED``, ``LEFT`` or ``ENDED``.
    fate: npt.NDArray[np.uint8]
    #: mm and ns.
    x: Floats
    y: Floats
    z: Floats
    time: Floats
    #: Momentum and energy there, after losses in material, GeV.
    px: Floats
    py: Floats
    pz: Floats
    energy: Floats

    @classmethod
    def none(cls, number: int) -> Self:
        """Return the states of ``number`` particles that were not simulated."""
        return cls(np.full(number, NOT_SIMULATED, np.uint8), *np.zeros((8, number), np.float32))

    def updated(self, later: Ends) -> Ends:
        """Return ``later``, which may have more particles, with the particles simulated here as they are."""
        simulated = np.flatnonzero(self.fate != NOT_SIMULATED)
        columns = {}
        for column in fields(self):
            columns[column.name] = getattr(later, column.name).copy()
            columns[column.name][simulated] = getattr(self, column.name)[simulated]
        return Ends(**columns)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedHits(Columns):
    """Crossings of tracker modules by particles, sorted by volume, layer and surface."""

    #: Position on the module's plane, mm.
    x: Doubles
    y: Doubles
    z: Doubles
    #: Direction of flight, a unit vector.
    dx: Floats
    dy: Floats
    dz: Floats
    #: ns.
    time: Floats
    particle_id: npt.NDArray[np.uint64]
    volume_id: npt.NDArray[np.uint8]
    layer_id: npt.NDArray[np.uint16]
    surface_id: npt.NDArray[np.uint32]

    def sorted(self) -> SimulatedHits:
        """Return the hits in the order of modules; the order within a module is kept."""
        return self.select(np.lexsort((self.surface_id, self.layer_id, self.volume_id)))


@dataclass(frozen=True, slots=True, eq=False)
class TrackerHits(Columns):
    """Measured tracker hits, with the columns and units of the hosted table."""

    x: Floats
    y: Floats
    z: Floats
    true_x: Floats
    true_y: Floats
    true_z: Floats
    time: Floats
    particle_id: npt.NDArray[np.uint64]
    volume_id: npt.NDArray[np.uint8]
    layer_id: npt.NDArray[np.uint16]
    surface_id: npt.NDArray[np.uint32]
    detector: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Local measurement of each tracker hit, with the columns and units of the table ``measurements``."""

    local_x: Floats
    local_y: Floats
    var_x: Floats
    var_y: Floats
    size_x: npt.NDArray[np.uint16]
    size_y: npt.NDArray[np.uint16]


#: Entries in the lower triangle of the covariance matrix of five track parameters.
COVARIANCE: Final = 15


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Reconstructed tracks, with the columns and units of the table ``tracks``.

    Lists of lists are flat here: ``covariance`` has ``COVARIANCE`` entries per track, ``hit_ids`` has
    ``num_hits`` indices into the event's tracker hits per track.
    """

    d0: Floats
    z0: Floats
    phi: Floats
    theta: Floats
    qop: Floats
    majority_particle_id: npt.NDArray[np.uint64]
    chi2: Floats
    num_holes: npt.NDArray[np.uint8]
    num_outliers: npt.NDArray[np.uint8]
    covariance: Floats
    num_hits: npt.NDArray[np.uint16]
    hit_ids: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.d0)


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedEvent:
    """Particles of the hard scatter and of all pileup collisions of one event."""

    event_id: int
    particles: Particles


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedEvent:
    """An event with secondary particles, final states in the tracker, and crossings of its modules."""

    event_id: int
    particles: Particles
    ends: Ends
    crossings: SimulatedHits


@dataclass(frozen=True, slots=True, eq=False)
class ReconstructedEvent:
    """Measured hits and reconstructed tracks of an event, with its truth."""

    event_id: int
    particles: Particles
    ends: Ends
    hits: TrackerHits
    measurements: Measurements
    tracks: Tracks


Event = TypeVar("Event", GeneratedEvent, SimulatedEvent, ReconstructedEvent)

_F32: Final = pa.float32()

#: Arrow types of the columns of each part; columns of hosted tables have their types.
_TYPES: Final[Mapping[type, Mapping[str, pa.DataType]]] = {
    Particles: {name: SCHEMAS["particles"].field(name).type for name in Particles.__slots__},
    Ends: {name: pa.list_(pa.uint8() if name == "fate" else _F32) for name in Ends.__slots__},
    SimulatedHits: dict.fromkeys(("x", "y", "z"), pa.list_(pa.float64()))
    | dict.fromkeys(("dx", "dy", "dz"), pa.list_(_F32))
    | {name: SCHEMAS["tracker_hits"].field(name).type for name in tuple(SimulatedHits.__slots__)[6:]},
    TrackerHits: {name: SCHEMAS["tracker_hits"].field(name).type for name in TrackerHits.__slots__},
    Measurements: {name: EXTENDED["measurements"].field(name).type for name in Measurements.__slots__},
    Tracks: {
        name: EXTENDED["tracks"].field(name).type
        for name in Tracks.__slots__
        if name not in {"covariance", "num_hits", "hit_ids"}
    }
    | {"covariance": pa.list_(_F32), "num_hits": pa.list_(pa.uint16()), "hit_ids": pa.list_(pa.uint32())},
}


def _parts(kind: type[Event]) -> dict[str, type]:
    """Return the classes of the parts of an event, by attribute."""
    return {name: type_ for name, type_ in get_type_hints(kind).items() if name != "event_id"}


def schema(kind: type[Event]) -> pa.Schema:
    """Return the schema of a table with one event per row; columns are named ``<part>.<column>``."""
    columns: list[pa.Field[Any]] = [
        pa.field(f"{part}.{name}", column)
        for part, type_ in _parts(kind).items()
        for name, column in _TYPES[type_].items()
    ]
    return pa.schema([pa.field("event_id", pa.uint32(), nullable=False), *columns])


def to_table(events: Iterable[Event], kind: type[Event]) -> pa.Table:
    """Return a table with one row of :func:`schema` per event."""
    events = list(events)
    layout = schema(kind)
    ids = pa.array([event.event_id for event in events], pa.uint32())
    columns: list[pa.Array[Any]] = []
    for field in list(layout)[1:]:
        part, name = field.name.split(".")
        columns.append(lists([getattr(getattr(event, part), name) for event in events], field.type))
    return pa.Table.from_arrays([ids, *columns], schema=layout)


def from_table(table: pa.Table, kind: type[Event]) -> Iterator[Event]:
    """Yield the events of a table that :func:`to_table` made."""
    kinds = _parts(kind)
    for batch in table.select(schema(kind).names).to_batches():
        for row, event_id in enumerate(batch.column("event_id").to_numpy()):
            parts: dict[str, Any] = {
                part: type_(*(_entries(batch.column(f"{part}.{field.name}"), row) for field in fields(type_)))
                for part, type_ in kinds.items()
            }
            yield kind(int(event_id), **parts)


def lists(arrays: Sequence[npt.NDArray[Any]], kind: pa.DataType) -> pa.Array[Any]:
    """Return a column of lists of type ``kind``, one list per array."""
    entries = np.concatenate(arrays) if arrays else np.empty(0)
    return nested([len(array) for array in arrays], entries).cast(kind)


def _entries(column: pa.Array[Any], row: int) -> npt.NDArray[Any]:
    return pc.list_flatten(column.slice(row, 1)).to_numpy(zero_copy_only=False)
