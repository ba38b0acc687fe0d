"""The truth of the task, computed once from the dataset's tables, with hit weights as in TrackML.

It has two tables. ``hits`` is in the order of the dataset and has event_id, hit_id, particle, and weight
(float32) unless hits are uniform. ``particle`` is the rank of the particle's id in its event, from 1; 0 is
noise. ``particles`` has the particles with hits, sorted by id within each event: event_id, particle_id, hits
(their number), high_pt (primary, pT above 1 GeV), accepted (also |eta| < 3 and at least six hits), and bin
numbers (:mod:`.bins`). Metadata of the tables goes to the manifest.

Weights in 32 bits change scores in the eighth digit. With 64 bits the truth of 1.5e9 hits left the page
cache, and scoring took 49 s instead of 22 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, positions_in_event
from collidium.contracts.task import NOTE, Tables, UnusableTruth
from collidium_tasks.tracking.bins import OF_PARTICLES

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Weights along a particle from its first hit to its last, interpolated linearly over its hits.
ORDER: Final = (10, 8, 6, 5, 3, 3, 3, 5, 6)
#: Minimum number of hits of particles whose hits have weight.
MIN_HITS: Final = 4
#: Maximum number of hits of a particle that have weight.
MAX_HITS: Final = 20
#: Transverse momenta (GeV) and factors, interpolated linearly; the factor is 0 below the first momentum.
PT, PT_FACTORS = (0.05, 0.5, 3.0), (0.2, 0.2, 1.0)

#: Minimum transverse momentum of the particles of physics_eff_pt1, GeV.
HIGH_PT: Final = 1.0
#: Maximum |eta| and minimum number of hits of the particles of double_majority_eff_pt1.
MAX_ETA, ACCEPTED_HITS = 3.0, 6

NOISE_ID = 0

#: Weights of hits: those of the dataset or else TrackML's, or all equal.
HitWeights = Literal["weighted", "uniform"]


def pt_factors(pt: Floats) -> Floats:
    """Return the factor of each particle's hits: 0.2 up to 0.5 GeV, 1 from 3 GeV on, linear in between.

    Parameters
    ----------
    pt : numpy.ndarray of float64, shape (particles,)
        Transverse momenta in GeV. A particle below 0.05 GeV or with NaN has factor 0.

    Examples
    --------
    >>> pt_factors(np.array([0.01, 0.2, 1.75, 40.0, np.nan])).tolist()
    [0.0, 0.2, 0.6, 1.0, 0.0]
    """
    return np.nan_to_num(np.interp(pt, PT, PT_FACTORS, left=0.0), nan=0.0)


def _order_weights() -> Floats:
    """Return weights by number of hits and position, shape (MAX_HITS + 1, MAX_HITS + 1)."""
    weights = np.zeros((MAX_HITS + 1, MAX_HITS + 1))
    for hits in range(MIN_HITS, MAX_HITS + 1):
        stretched = np.arange(len(ORDER)) * (hits - 1) / (len(ORDER) - 1)
        weights[hits, :hits] = np.interp(np.arange(hits), stretched, ORDER)
        weights[hits] /= weights[hits].sum()
    return weights


def hit_weights(event: Integers, particle: Integers, distance: Floats, factor: Floats) -> Floats:
    """Return the weight of each hit; the weights of an event add up to 1, or are all 0.

    Parameters
    ----------
    event : numpy.ndarray of int64, shape (hits,)
        Events, in rising order.
    particle : numpy.ndarray of int64, shape (hits,)
        Index of the hit's particle among those of all events; -1 is noise, which has weight 0.
    distance : numpy.ndarray of float64, shape (hits,)
        Distance from the particle's vertex, in mm, which orders its hits. Ties share the middle position,
        rounded down.
    factor : numpy.ndarray of float64, shape (particles,)
        Factor of each particle (:func:`pt_factors`).

    References
    ----------
    S. Amrouche et al., The Tracking Machine Learning challenge: Accuracy phase, arXiv:1904.06778, section 4;
    ``weights.py`` of trackml-library.
    """
    weights = np.zeros(len(particle))
    owned = np.flatnonzero(particle >= 0)
    order = owned[np.lexsort((distance[owned], particle[owned]))]
    owner = particle[order]
    is_first = np.diff(owner, prepend=-1) != 0
    starts, hits = _runs(is_first)
    ties, lengths = _runs(is_first | (np.diff(distance[order], prepend=np.nan) != 0))
    place = np.repeat(ties + (lengths - 1) // 2, lengths) - np.repeat(starts, hits)
    table = _order_weights()
    weights[order] = table[np.minimum(np.repeat(hits, hits), MAX_HITS), np.minimum(place, MAX_HITS)]
    weights[order] *= factor[owner]
    number = np.cumsum(np.diff(event, prepend=event[:1]) != 0)
    total = np.bincount(number, weights)
    weights /= np.where(total > 0, total, 1.0)[number]
    return weights


def _runs(begins: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return the starts and lengths of runs."""
    starts = np.flatnonzero(begins)
    return starts, np.diff(starts, append=len(begins))


def prepare(tables: Tables, hits: HitWeights = "weighted") -> dict[str, pa.Table]:
    """Return the truth tables of a block of events.

    ``tracker_hits`` needs particle_id (0 is noise). Without hit_id, the id of a hit is its position in the
    list. Weights are those of the column weight, else those of TrackML (:func:`hit_weights`), unless ``hits``
    is "uniform". For TrackML's weights, a particle's hits are ordered by the distance of true_z, or z, from
    the particle's vz; without vz by the distance from the origin. Without px and py, or pt, in GeV, all
    particles have factor 1. Hits of particles without an entry in ``particles``, and noise, have weight 0.
    Without the column ``primary``, all particles count as primary.

    Raises :class:`~collidium.contracts.task.UnusableTruth` for missing columns, nulls, repeated events,
    repeated hit or particle ids within an event, negative ids and invalid weights.
    """
    tracker_hits, listed = tables["tracker_hits"], tables["particles"]
    rows = _Rows.of(tables, "tracker_hits", _hit_columns(tracker_hits, weighted=hits == "weighted"))
    particles = _Rows.of(tables, "particles", _particle_columns(listed))
    hit_ids = rows.integers("hit_id") if "hit_id" in rows.columns else _places(rows)
    _refuse_repeated(rows, hit_ids, "hit_id")
    _refuse_repeated(particles, particles.integers("particle_id"), "particle_id")
    place, found = _number_particles(rows)
    entry = _entries(found, particles)
    hit_table = {
        "event_id": pa.array(rows.events, pa.uint32()),
        "hit_id": pa.array(hit_ids),
        "particle": pa.array(place, pa.uint32()),
    }
    notes = {"hit_weights": "uniform"}
    if "weight" in rows.columns:
        hit_table["weight"] = pa.array(_given_weights(rows, place), pa.float32())
        notes = {"hit_weights": "column weight of tracker_hits"}
    elif hits == "weighted":
        weights, notes = _trackml_weights(rows, place, found, particles, entry)
        hit_table["weight"] = pa.array(weights, pa.float32())
    metadata = {f"{NOTE}{name}": note for name, note in notes.items()}
    return {
        "hits": pa.table(hit_table).replace_schema_metadata(metadata),
        "particles": _particle_table(found, particles, entry),
    }


# -- the dataset's tables, one row per hit or particle --------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """A flattened dataset table: ``events`` and ``columns`` have one entry per row."""

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
        """Return a column of ids with its own type. Raises UnusableTruth unless they are integers from 0."""
        ids = self.columns[column]
        if not np.issubdtype(ids.dtype, np.integer):
            raise UnusableTruth(f"table {self.table}, column {column}: {ids.dtype} is no integer type")
        integers: npt.NDArray[np.integer] = ids.view()  # type: ignore[assignment]  # just checked
        if len(integers) and integers.min() < 0:
            raise UnusableTruth(f"table {self.table}, column {column}: has negative ids")
        return integers


def _hit_columns(table: pa.Table, *, weighted: bool) -> list[str]:
    names = table.column_names
    if "particle_id" not in names:
        raise UnusableTruth("table tracker_hits, column particle_id: is missing")
    needed = ["particle_id", *(["hit_id"] if "hit_id" in names else [])]
    if not weighted:
        return needed
    if "weight" in names:
        return [*needed, "weight"]
    if not {"x", "y", "z"} <= set(names):
        raise UnusableTruth(
            "table tracker_hits: has neither weight nor x, y and z to make weights from; hits weigh the same "
            "with --option hits=uniform"
        )
    return [*needed, "x", "y", "z", *(["true_z"] if "true_z" in names else [])]


def _particle_columns(table: pa.Table) -> list[str]:
    names = table.column_names
    if "particle_id" not in names:
        raise UnusableTruth("table particles, column particle_id: is missing")
    momentum = ("px", "py", "pz") if {"px", "py"} <= set(names) else ("pt", "eta")
    return ["particle_id", *(name for name in (*momentum, "vx", "vy", "vz", "primary") if name in names)]


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
    """Return the number of each hit's particle in its event (0: noise), and the particles."""
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


def _entries(found: _Particles, particles: _Rows) -> npt.NDArray[np.int64]:
    """Return each particle's row in the table of particles, or -1."""
    entry = np.full(len(found.ids), -1)
    ids = particles.integers("particle_id").astype(np.uint64)
    order = np.lexsort((ids, particles.events))
    ids, events = ids[order], particles.events[order]
    for event, rows in _slices(found.events):
        first, last = np.searchsorted(events, [event, event + 1])
        if first < last:
            at = first + np.minimum(np.searchsorted(ids[first:last], found.ids[rows]), last - first - 1)
            entry[rows] = np.where(ids[at] == found.ids[rows], order[at], -1)
    return entry


def _given_weights(hits: _Rows, place: npt.NDArray[np.uint32]) -> Floats:
    weights = hits.columns["weight"].astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise UnusableTruth("table tracker_hits, column weight: has values that are negative or not finite")
    weights[place == 0] = 0.0
    return weights


def _trackml_weights(
    hits: _Rows,
    place: npt.NDArray[np.uint32],
    found: _Particles,
    particles: _Rows,
    entry: npt.NDArray[np.int64],
) -> tuple[Floats, dict[str, str]]:
    """Return the weight of each hit, and notes for the manifest."""
    pt, vz = _pt(particles), _floats(particles, "vz")
    particle = np.where(
        place > 0, np.searchsorted(found.events, hits.events) + place.astype(np.int64) - 1, -1
    )
    if vz is None:
        x, y, z = (hits.columns[name].astype(np.float64) for name in ("x", "y", "z"))
        distance = np.sqrt(x * x + y * y + z * z)
    else:
        z = hits.columns["true_z" if "true_z" in hits.columns else "z"].astype(np.float64)
        distance = np.abs(z - np.append(_of_found(vz, entry), 0.0)[particle])
    factor = _of_found(np.ones(len(particles.events)) if pt is None else pt_factors(pt), entry)
    notes = {
        "hit_weights": "TrackML",
        "hit_order": "distance from the origin" if vz is None else "distance in z from the particle's vertex",
        "pt_factor": "1, as particles have no momentum" if pt is None else "TrackML",
    }
    return hit_weights(hits.events.astype(np.int64), particle, distance, factor), notes


def _of_found(values: Floats, entry: npt.NDArray[np.int64]) -> Floats:
    """Return the value of each particle with hits; 0 without an entry."""
    return np.append(values, 0.0)[entry]


def _particle_table(found: _Particles, particles: _Rows, entry: npt.NDArray[np.int64]) -> pa.Table:
    pt = _pt(particles)
    fast = np.zeros(len(particles.events), np.bool_) if pt is None else pt > HIGH_PT
    primary = particles.columns.get("primary", np.ones(len(fast))).astype(np.bool_)
    high = fast & primary
    eta, radius = _eta(particles, pt), _radius(particles)
    central = np.ones(len(high), np.bool_) if eta is None else np.abs(eta) < MAX_ETA
    accepted = high & central
    numbers = {
        # Also below 1 GeV.
        "efficiency_pt": (pt, primary & central),
        "efficiency_eta": (eta, accepted),
        # Also secondaries.
        "efficiency_radius": (radius, central & fast),
    }
    high_pt, accepted = (np.append(chosen, False)[entry] for chosen in (high, accepted))
    return pa.table(
        {
            "event_id": found.events,
            "particle_id": found.ids,
            "hits": found.hits,
            "high_pt": high_pt,
            "accepted": accepted & (found.hits >= ACCEPTED_HITS),
            **{
                name: np.zeros(len(entry), np.uint8)
                if values is None
                else np.append(OF_PARTICLES[name].numbers(values, counted), np.uint8(0))[entry]
                * (found.hits >= ACCEPTED_HITS)
                for name, (values, counted) in numbers.items()
            },
        }
    )


def _pt(particles: _Rows) -> Floats | None:
    """Return transverse momenta in GeV; None without the columns."""
    px, py = _floats(particles, "px"), _floats(particles, "py")
    return _floats(particles, "pt") if px is None or py is None else np.hypot(px, py)


def _eta(particles: _Rows, pt: Floats | None) -> Floats | None:
    """Return pseudorapidities; None without the columns."""
    pz = _floats(particles, "pz")
    if pz is None or pt is None:
        return _floats(particles, "eta")
    eta: Floats = np.arcsinh(pz / np.where(pt > 0, pt, np.nan))
    return eta


def _radius(particles: _Rows) -> Floats | None:
    """Return production radii, mm; None without the columns."""
    vx, vy = _floats(particles, "vx"), _floats(particles, "vy")
    return None if vx is None or vy is None else np.hypot(vx, vy)


def _floats(rows: _Rows, column: str) -> Floats | None:
    values = rows.columns.get(column)
    return None if values is None else values.astype(np.float64)
