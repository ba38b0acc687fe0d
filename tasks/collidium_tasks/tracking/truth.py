"""Truth as it is kept on the server, made once from the dataset's own tables.

Two tables. ``hits``, in the order of the dataset: event_id, hit_id, particle, and weight where the dataset
has one. ``particles``, sorted by particle_id within an event, those with at least one hit: event_id,
particle_id, hits (how many), high_pt (primary, transverse momentum above 1 GeV). ``particle`` is the place
of the hit's particle among those of its event, from 1; 0 is noise. A smaller place is a smaller id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, positions_in_event
from collidium.contracts.task import Tables, UnusableTruth

#: Least transverse momentum, in GeV, of the particles that physics_eff_pt1 asks for.
HIGH_PT = 1.0

NOISE_ID = 0


def prepare(tables: Tables) -> dict[str, pa.Table]:
    """The truth tables of a block of events.

    ``tracker_hits`` needs particle_id (0 is noise); without hit_id a hit's id is its place in the list,
    without weight every hit weighs 1, and noise always weighs 0. ``particles`` needs particle_id and either
    px and py or pt, in GeV; without the flag ``primary`` all particles count as primary. A particle that
    has hits but no entry in ``particles`` counts as a particle without momentum.

    Raises :class:`~collidium.contracts.task.UnusableTruth` for missing columns, nulls, repeated events,
    repeated hit or particle ids within an event, negative ids and weights that are no weights.
    """
    hits = _Rows.of(tables, "tracker_hits", _hit_columns(tables["tracker_hits"]))
    particles = _Rows.of(tables, "particles", _particle_columns(tables["particles"]))
    hit_ids = hits.integers("hit_id") if "hit_id" in hits.columns else _places(hits)
    _refuse_repeated(hits, hit_ids, "hit_id")
    _refuse_repeated(particles, particles.integers("particle_id"), "particle_id")
    place, found = _number_particles(hits)
    hit_table = {
        "event_id": pa.array(hits.events, pa.uint32()),
        "hit_id": pa.array(hit_ids),
        "particle": pa.array(place, pa.uint32()),
    }
    if "weight" in hits.columns:
        hit_table["weight"] = pa.array(_weights(hits, place))
    return {"hits": pa.table(hit_table), "particles": _particle_table(found, particles)}


# -- the dataset's tables, one row per hit or particle --------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """A dataset table, flattened: ``events`` and ``columns`` have one entry per row."""

    table: str
    events: npt.NDArray[np.uint32]
    columns: dict[str, npt.NDArray[np.generic]]

    @classmethod
    def of(cls, tables: Tables, name: str, columns: list[str]) -> _Rows:
        """Flatten ``columns`` of the table ``name``."""
        table = tables[name]
        if not _strictly_rising(np.asarray(table.column("event_id"))):
            raise UnusableTruth(f"table {name}, column event_id: an event appears twice, or out of order")
        try:
            flat = flatten(table, columns)
        except ValueError as error:
            raise UnusableTruth(f"table {name}: {error}") from error
        for column in columns:
            if flat.column(column).null_count:
                raise UnusableTruth(f"table {name}, column {column}: has nulls")
        arrays = {column: np.asarray(flat.column(column)) for column in columns}
        return cls(name, np.asarray(flat.column("event_id")).astype(np.uint32), arrays)

    def integers(self, column: str) -> npt.NDArray[np.integer]:
        """A column of ids in its own width; anything but integers of 0 and more is refused."""
        ids = self.columns[column]
        if not np.issubdtype(ids.dtype, np.integer):
            raise UnusableTruth(f"table {self.table}, column {column}: {ids.dtype} is no integer type")
        integers: npt.NDArray[np.integer] = ids.view()  # type: ignore[assignment]  # just checked
        if len(integers) and integers.min() < 0:
            raise UnusableTruth(f"table {self.table}, column {column}: has negative ids")
        return integers


def _hit_columns(table: pa.Table) -> list[str]:
    if "particle_id" not in table.column_names:
        raise UnusableTruth("table tracker_hits, column particle_id: is missing")
    return ["particle_id", *(name for name in ("hit_id", "weight") if name in table.column_names)]


def _particle_columns(table: pa.Table) -> list[str]:
    names = table.column_names
    if "particle_id" not in names:
        raise UnusableTruth("table particles, column particle_id: is missing")
    if {"px", "py"} <= set(names):
        momentum = ["px", "py"]
    elif "pt" in names:
        momentum = ["pt"]
    else:
        raise UnusableTruth("table particles: has neither the columns px and py nor pt")
    return ["particle_id", *momentum, *(["primary"] if "primary" in names else [])]


def _places(hits: _Rows) -> npt.NDArray[np.int32]:
    _, lengths = np.unique(hits.events, return_counts=True)
    return positions_in_event(lengths).astype(np.int32)


def _strictly_rising(ids: npt.NDArray[np.integer]) -> bool:
    return bool(np.all(ids[1:] > ids[:-1]))


def _refuse_repeated(rows: _Rows, ids: npt.NDArray[np.integer], column: str) -> None:
    order = np.lexsort((ids, rows.events))
    repeated = (np.diff(rows.events[order]) == 0) & (ids[order][1:] == ids[order][:-1])
    if repeated.any():
        row = order[int(np.flatnonzero(repeated)[0])]
        raise UnusableTruth(
            f"table {rows.table}, column {column}: {ids[row]} appears twice in event {rows.events[row]}"
        )


# -- numbering particles --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Particles:
    """Particles with hits, sorted by event and id."""

    events: npt.NDArray[np.uint32]
    ids: npt.NDArray[np.uint64]
    hits: npt.NDArray[np.uint32]


def _number_particles(hits: _Rows) -> tuple[npt.NDArray[np.uint32], _Particles]:
    """Each hit's place among the particles of its event (0: noise), and these particles."""
    ids = hits.integers("particle_id").astype(np.uint64)
    place = np.empty(len(ids), np.uint32)
    events, numbers, counts = [np.empty(0, np.uint32)], [np.empty(0, np.uint64)], [np.empty(0, np.uint32)]
    for event, rows in _slices(hits.events):
        unique, inverse, count = np.unique(ids[rows], return_inverse=True, return_counts=True)
        has_noise = int(unique[0] == NOISE_ID)
        place[rows] = inverse + (1 - has_noise)
        numbers.append(unique[has_noise:])
        counts.append(count[has_noise:].astype(np.uint32))
        events.append(np.full(len(unique) - has_noise, event, np.uint32))
    return place, _Particles(np.concatenate(events), np.concatenate(numbers), np.concatenate(counts))


def _slices(events: npt.NDArray[np.uint32]) -> Iterator[tuple[int, slice]]:
    unique, starts = np.unique(events, return_index=True)
    stops = np.append(starts, len(events))[1:]
    for event, start, stop in zip(unique, starts, stops, strict=True):
        yield int(event), slice(int(start), int(stop))


def _weights(hits: _Rows, place: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    weights = hits.columns["weight"].astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise UnusableTruth("table tracker_hits, column weight: has values that are negative or not finite")
    weights[place == 0] = 0.0
    return weights


def _particle_table(found: _Particles, particles: _Rows) -> pa.Table:
    wanted = _high_pt(particles)
    high_ids = particles.integers("particle_id").astype(np.uint64)[wanted]
    high_pt = np.zeros(len(found.ids), np.bool_)
    high_events = particles.events[wanted]
    for event, rows in _slices(found.events):
        first, last = np.searchsorted(high_events, [event, event + 1])
        high_pt[rows] = np.isin(found.ids[rows], high_ids[first:last])
    return pa.table(
        {"event_id": found.events, "particle_id": found.ids, "hits": found.hits, "high_pt": high_pt}
    )


def _high_pt(particles: _Rows) -> npt.NDArray[np.bool_]:
    columns = particles.columns
    if "pt" in columns:
        pt = columns["pt"].astype(np.float64)
    else:
        pt = np.hypot(columns["px"].astype(np.float64), columns["py"].astype(np.float64))
    high: npt.NDArray[np.bool_] = pt > HIGH_PT
    return high & columns["primary"].astype(np.bool_) if "primary" in columns else high
