"""Events passed from stage to stage: as arrays, or as a row of an arrow table.

An event grows from stage to stage: generated, simulated, reconstructed. Each has the arrays of the one
before, as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Self, TypeVar

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
    """Arrays with an entry each for every particle, hit or deposit."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def chosen(self, which: npt.NDArray[Any]) -> Self:
        """Those of a mask or of indices."""
        return type(self)(*(getattr(self, column.name)[which] for column in fields(self)))

    @classmethod
    def join(cls, parts: Iterable[Columns]) -> Self:
        """One after the other."""
        parts = list(parts)
        return cls(
            *(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls))
        )


@dataclass(frozen=True, slots=True, eq=False)
class Particles(Columns):
    """Particles of one event; every array has one entry per particle. Columns and units of the hosted table.

    Generated particles come first and have ``particle_id`` 1, 2, …, N in their order; what the detector
    simulation makes follows with N + 1, … and ``primary`` false. A generated particle that is a
    parent of a generated one has decayed in the generator.
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


#: The fate of a particle in the tracker: not simulated (it has decayed, is invisible or too slow), left the
#: tracker or turned back in it, or ended in it by stopping or turning into others.
NOT_SIMULATED: Final = 0
LEFT: Final = 1
ENDED: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The final state of each particle in the tracker's simulation, in the order of particles.

    For particles that were not simulated everything is 0.
    """

    #: ``NOT_SIMULATED``, ``LEFT`` or ``ENDED``.
    fate: npt.NDArray[np.uint8]
    #: mm and ns.
    x: Floats
    y: Floats
    z: Floats
    time: Floats
    #: Momentum and energy there, GeV: less than at the vertex by what was lost in material.
    px: Floats
    py: Floats
    pz: Floats
    energy: Floats

    @classmethod
    def none(cls, number: int) -> Self:
        """Of particles that were not simulated."""
        return cls(np.full(number, NOT_SIMULATED, np.uint8), *np.zeros((8, number), np.float32))

    def followed_by(self, later: Ends) -> Ends:
        """These, as far as particles were simulated, and otherwise the later ones, of as many or more."""
        mine = np.flatnonzero(self.fate != NOT_SIMULATED)
        columns = {}
        for column in fields(self):
            columns[column.name] = getattr(later, column.name).copy()
            columns[column.name][mine] = getattr(self, column.name)[mine]
        return Ends(**columns)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedHits(Columns):
    """Where particles crossed modules of the tracker, sorted by volume, layer and surface."""

    #: On the module's plane, mm.
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
        """Those of a module after each other, as they were."""
        return self.chosen(np.lexsort((self.surface_id, self.layer_id, self.volume_id)))


@dataclass(frozen=True, slots=True, eq=False)
class TrackerHits(Columns):
    """What the tracker measured; columns and units of the hosted table."""

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
    """What modules measured of each tracker hit; columns and units of the table."""

    local_x: Floats
    local_y: Floats
    var_x: Floats
    var_y: Floats
    size_x: npt.NDArray[np.uint16]
    size_y: npt.NDArray[np.uint16]


#: Entries of the covariance of a track's five parameters, without the symmetric ones.
COVARIANCE: Final = 15


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Reconstructed tracks; columns and units of the table, except for hits and covariance."""

    d0: Floats
    z0: Floats
    phi: Floats
    theta: Floats
    qop: Floats
    majority_particle_id: npt.NDArray[np.uint64]
    chi2: Floats
    num_holes: npt.NDArray[np.uint8]
    num_outliers: npt.NDArray[np.uint8]
    #: ``COVARIANCE`` entries of the first track, of the second, …
    covariance: Floats
    #: How many hits each track has.
    num_hits: npt.NDArray[np.uint16]
    #: The hits of the first track, of the second, …: indices into the event's tracker hits.
    hit_ids: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.d0)


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedEvent:
    """Particles of the hard scatter and of all pileup interactions of one event."""

    PARTS: ClassVar[Mapping[str, type]] = {"particles": Particles}

    event_id: int
    particles: Particles


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedEvent:
    """Also the particles that were made in the detector, and what they did in the tracker."""

    PARTS: ClassVar[Mapping[str, type]] = {"particles": Particles, "ends": Ends, "crossings": SimulatedHits}

    event_id: int
    particles: Particles
    ends: Ends
    crossings: SimulatedHits


@dataclass(frozen=True, slots=True, eq=False)
class ReconstructedEvent:
    """What was measured and reconstructed, with the truth."""

    PARTS: ClassVar[Mapping[str, type]] = {
        "particles": Particles,
        "ends": Ends,
        "hits": TrackerHits,
        "measurements": Measurements,
        "tracks": Tracks,
    }

    event_id: int
    particles: Particles
    ends: Ends
    hits: TrackerHits
    measurements: Measurements
    tracks: Tracks


Event = TypeVar("Event", GeneratedEvent, SimulatedEvent, ReconstructedEvent)

_F32: Final = pa.float32()

#: Types of the columns of each part; hosted ones are as in the hosted tables.
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


def schema(kind: type[Event]) -> pa.Schema:
    """One row is one event of that kind; columns are named ``<part>.<column>``."""
    names: list[tuple[str, pa.DataType]] = [
        (f"{part}.{name}", column)
        for part, type_ in kind.PARTS.items()
        for name, column in _TYPES[type_].items()
    ]
    return pa.schema(
        [pa.field("event_id", pa.uint32(), nullable=False), *(pa.field(*name) for name in names)]
    )


def to_table(events: Iterable[Event], kind: type[Event] = GeneratedEvent) -> pa.Table:  # type: ignore[assignment]  # a default for a type variable
    """One row of :func:`schema` per event, in their order."""
    events = list(events)
    layout = schema(kind)
    ids = pa.array([event.event_id for event in events], pa.uint32())
    columns: list[pa.Array[Any]] = []
    for field in list(layout)[1:]:
        part, name = field.name.split(".")
        columns.append(lists([getattr(getattr(event, part), name) for event in events], field.type))
    return pa.Table.from_arrays([ids, *columns], schema=layout)


def from_table(table: pa.Table, kind: type[Event] = GeneratedEvent) -> Iterator[Event]:  # type: ignore[assignment]  # a default for a type variable
    """The events of a table that :func:`to_table` made of events of that kind."""
    for batch in table.select(schema(kind).names).to_batches():
        for row, event_id in enumerate(batch.column("event_id").to_numpy()):
            parts: dict[str, Any] = {
                part: type_(
                    **{
                        name: _entries(batch.column(f"{part}.{name}"), row)
                        for name in (field.name for field in fields(type_))
                    }
                )
                for part, type_ in kind.PARTS.items()
            }
            yield kind(int(event_id), **parts)


def lists(arrays: Sequence[npt.NDArray[Any]], kind: pa.DataType) -> pa.Array[Any]:
    """A column of lists of that type, one entry per array."""
    entries = np.concatenate(arrays) if arrays else np.empty(0)
    return nested([len(array) for array in arrays], entries).cast(kind)


def _entries(column: pa.Array[Any], row: int) -> npt.NDArray[Any]:
    return pc.list_flatten(column.slice(row, 1)).to_numpy(zero_copy_only=False)
