"""The tables of the hosted format, with the type and unit of each column.

One row is one event; every column but ``event_id`` holds a list, with one entry for each particle, hit,
deposit, track or jet of the event. Source: the card of CERN/ColliderML-Release-1 and arXiv:2512.15230; table
``jets`` is our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

#: Events in a shard, by the lowest pileup it holds for: a shard stays near some hundred MB.
_EVENTS_PER_SHARD: Final = ((100, 100), (0, 1000))


def events_per_shard(pileup: int) -> int:
    """How many events a shard of a dataset of that pileup holds; the last may hold fewer."""
    return next(events for minimum, events in _EVENTS_PER_SHARD if pileup >= minimum)


def _schema(**columns: tuple[pa.DataType, str]) -> pa.Schema:
    fields = [
        pa.field(name, pa.list_(kind), metadata={"unit": unit} if unit else None)
        for name, (kind, unit) in columns.items()
    ]
    return pa.schema([pa.field("event_id", pa.uint32(), nullable=False), *fields])


_F32: Final = pa.float32()

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "particles": _schema(
        particle_id=(pa.uint64(), ""),
        pdg_id=(pa.int64(), ""),
        mass=(_F32, "GeV"),
        energy=(_F32, "GeV"),
        charge=(_F32, "e"),
        px=(_F32, "GeV"),
        py=(_F32, "GeV"),
        pz=(_F32, "GeV"),
        vx=(_F32, "mm"),
        vy=(_F32, "mm"),
        vz=(_F32, "mm"),
        time=(_F32, "ns"),
        perigee_d0=(_F32, "mm"),
        perigee_z0=(_F32, "mm"),
        num_tracker_hits=(pa.uint16(), ""),
        num_calo_hits=(pa.uint16(), ""),
        primary=(pa.bool_(), ""),
        vertex_primary=(pa.uint16(), ""),
        parent_id=(pa.int64(), ""),
    ),
    "tracker_hits": _schema(
        x=(_F32, "mm"),
        y=(_F32, "mm"),
        z=(_F32, "mm"),
        true_x=(_F32, "mm"),
        true_y=(_F32, "mm"),
        true_z=(_F32, "mm"),
        time=(_F32, "ns"),
        particle_id=(pa.uint64(), ""),
        volume_id=(pa.uint8(), ""),
        layer_id=(pa.uint16(), ""),
        surface_id=(pa.uint32(), ""),
        detector=(pa.uint8(), ""),
    ),
    "calo_hits": _schema(
        detector=(pa.uint8(), ""),
        x=(_F32, "mm"),
        y=(_F32, "mm"),
        z=(_F32, "mm"),
        total_energy=(_F32, "GeV"),
        contrib_particle_ids=(pa.list_(pa.uint64()), ""),
        contrib_energies=(pa.list_(_F32), "GeV"),
        contrib_times=(pa.list_(_F32), "ns"),
    ),
    "tracks": _schema(
        track_id=(pa.uint16(), ""),
        d0=(_F32, "mm"),
        z0=(_F32, "mm"),
        phi=(_F32, "rad"),
        theta=(_F32, "rad"),
        qop=(_F32, "1/GeV"),
        majority_particle_id=(pa.uint64(), ""),
        hit_ids=(pa.list_(pa.uint32()), ""),
    ),
    "jets": _schema(
        jet_id=(pa.uint16(), ""),
        pt=(_F32, "GeV"),
        eta=(_F32, ""),
        phi=(_F32, "rad"),
        mass=(_F32, "GeV"),
        constituents=(pa.list_(pa.uint32()), ""),
        flavour=(pa.uint8(), ""),
    ),
}


#: The tables of the built-in pipeline: the hosted columns come first. ``covariance`` is the lower triangle,
#: row by row, of d0, z0, φ, θ and q/p. ``measurements`` has an entry for each of ``tracker_hits``: position
#: and variances in the module's plane, and channels of the cluster along both axes. A coordinate that is not
#: measured is 0 with the variance of a uniform distribution over the module.
EXTENDED: Final[Mapping[str, pa.Schema]] = {
    **SCHEMAS,
    "tracks": pa.schema(
        [
            *SCHEMAS["tracks"],
            *list(
                _schema(
                    covariance=(pa.list_(_F32), "mm, rad, 1/GeV"),
                    chi2=(_F32, ""),
                    num_holes=(pa.uint8(), ""),
                    num_outliers=(pa.uint8(), ""),
                )
            )[1:],
        ]
    ),
    "measurements": _schema(
        local_x=(_F32, "mm"),
        local_y=(_F32, "mm"),
        var_x=(_F32, "mm²"),
        var_y=(_F32, "mm²"),
        size_x=(pa.uint16(), ""),
        size_y=(pa.uint16(), ""),
    ),
}


def without_notes(schema: pa.Schema) -> pa.Schema:
    """Names, types and units: a file's own metadata may reveal how its events were made."""
    fields = []
    for field in schema:
        unit = (field.metadata or {}).get(b"unit")
        plain = field.remove_metadata()
        fields.append(plain if unit is None else plain.with_metadata({b"unit": unit}))
    return pa.schema(fields)


_POSITION: Final = {"x": ("x", "tx"), "y": ("y", "ty"), "z": ("z", "tz")}

ALIASES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "tracker_hits": {**_POSITION, "particle_id": ("particle_id", "majority_particle_id")},
    "calo_hits": _POSITION,
    "particles": {"particle_id": ("particle_id", "majority_particle_id")},
    "tracks": {"majority_particle_id": ("majority_particle_id", "particle_id")},
}


def canonical(table: str, stored: Sequence[str]) -> dict[str, str]:
    """Map canonical names to the ``stored`` names of a file's columns, in the order of the file.

    Where a file has several names for one thing, the best is taken and the others are left out.
    """
    aliases = ALIASES.get(table, {})
    meaning = {alias: name for name, names in aliases.items() for alias in names}
    chosen: dict[str, str] = {}
    for column in stored:
        name = meaning.get(column, column)
        if name not in chosen or column == _best(aliases[name], stored):
            chosen[name] = column
    return chosen


def _best(aliases: Sequence[str], stored: Sequence[str]) -> str:
    return next(alias for alias in aliases if alias in stored)
