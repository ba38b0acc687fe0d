"""A block of events as flat arrays: stored columns, and quantities that follow from several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium import physics
from collidium.contracts.tables import is_list
from collidium.physics.constants import BENDING, HCAL_CODE, m

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]

PIXEL_VOLUMES: Final = (16, 17, 18)
#: Minimum fraction of a track's hits from its particle, as in ACTS's ``TrackTruthMatcher``.
MATCHING: Final = 0.5


class MissingColumn(Exception):
    """A quantity needs a table or column that the dataset does not have."""


class EventBlock:
    """A block of events.

    ``block["tracks.d0"]`` is a column of all events as a flat array; ``block.event("tracks")`` the index of
    the event of each entry. Derived quantities are computed on first use.

    Parameters
    ----------
    tables
        Tables by name, of the same events, one per row, with canonical column names.
    events
        Number of events.
    """

    def __init__(self, tables: Mapping[str, pa.Table], events: int) -> None:
        self.events = events
        self._tables = tables
        self._columns: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """Return the flattened entries of a column. Raises MissingColumn."""
        if name not in self._columns:
            column: Any = self._column(name)
            while is_list(column.type):
                column = pc.list_flatten(column)
            self._columns[name] = np.asarray(column)
        return self._columns[name]

    def lengths(self, name: str) -> Integers:
        """Return the length of each event's list. Raises MissingColumn."""
        return np.asarray(pc.list_value_length(self._column(name)), np.int64)

    def inner_lengths(self, name: str) -> Integers:
        """Return the lengths of the inner lists of a column. Raises MissingColumn."""
        return np.asarray(pc.list_value_length(pc.list_flatten(self._column(name))), np.int64)

    def event(self, table: str) -> Integers:
        """Return the index of the event of each entry of a table. Raises MissingColumn."""
        first = self._table(table).column_names[1]
        return np.repeat(np.arange(self.events), self.lengths(f"{table}.{first}"))

    def _table(self, name: str) -> pa.Table:
        if name not in self._tables:
            raise MissingColumn(f"no table {name}")
        return self._tables[name]

    def _column(self, name: str) -> pa.ChunkedArray[Any]:
        table, _, column = name.partition(".")
        if column not in self._table(table).column_names:
            raise MissingColumn(f"no column {column} in table {table}")
        found = self._table(table).column(column)
        if found.null_count:
            raise MissingColumn(f"column {column} of table {table} is withheld")
        return found

    # -- particles ------------------------------------------------------------------------------------

    def particle(self, event: Integers, ids: Array) -> Integers:
        """Return the index of particles by event and id, or -1."""
        return self._particles.rows(self._ragged(event, ids))

    @cached_property
    def _particles(self) -> physics.Finder:
        return physics.Finder(self._ragged(self.event("particles"), self["particles.particle_id"]))

    def _ragged(self, event: Integers, values: Array) -> physics.Ragged:
        lengths = np.bincount(event, minlength=self.events)
        return physics.Ragged(values, np.concatenate([[0], np.cumsum(lengths)]))

    @cached_property
    def pt(self) -> Array:
        """Transverse momentum of particles, GeV."""
        return np.hypot(self["particles.px"], self["particles.py"])

    @cached_property
    def eta(self) -> Array:
        """Pseudorapidity of particles at their vertex."""
        return np.arcsinh(self["particles.pz"] / np.maximum(self.pt, 1e-9))

    @cached_property
    def radius(self) -> Array:
        """Production radius of particles, mm."""
        return np.hypot(self["particles.vx"], self["particles.vy"])

    @cached_property
    def parent(self) -> Integers:
        """Index of each particle's parent, or -1."""
        return self.particle(self.event("particles"), self["particles.parent_id"])

    @cached_property
    def final(self) -> npt.NDArray[np.bool_]:
        """Mask of final particles of the generator: primaries that are not the parent of a primary."""
        primary = self["particles.primary"].astype(bool)
        decayed = np.zeros(len(primary), bool)
        decayed[self.parent[(self.parent >= 0) & primary]] = True
        return primary & ~decayed

    @cached_property
    def root(self) -> Integers:
        """Index of each particle's primary ancestor; its own for a primary."""
        return physics.primary_ancestor(self["particles.primary"], self.parent)

    # -- tracker --------------------------------------------------------------------------------------

    @cached_property
    def hit_particle(self) -> Integers:
        """Index of each hit's particle, or -1."""
        return self.particle(self.event("tracker_hits"), self["tracker_hits.particle_id"])

    def hits_of_particles(self, volumes: Sequence[int] = ()) -> Integers:
        """Return the number of hits of each particle, in all volumes or in some."""
        owner = self.hit_particle
        counted = owner >= 0
        if volumes:
            counted &= np.isin(self["tracker_hits.volume_id"], volumes)
        return np.bincount(owner[counted], minlength=len(self["particles.particle_id"]))

    @cached_property
    def findable(self) -> npt.NDArray[np.bool_]:
        """Mask of particles in the denominator of efficiencies: that of production, for primaries."""
        findable: npt.NDArray[np.bool_] = (
            self["particles.primary"].astype(bool)
            & (self["particles.charge"] != 0)
            & (self.radius < 24.0)
            & (np.abs(self["particles.vz"]) < 1000.0)
            & (np.abs(self.eta) < 3.0)
            & (self.pt > 0.999)
            & (self.hits_of_particles() >= 6)
            & (self.hits_of_particles(PIXEL_VOLUMES) >= 3)
        )
        return findable

    @cached_property
    def track_hits(self) -> tuple[Integers, Integers]:
        """Track index and hit index of each hit on a track."""
        counts = self.inner_lengths("tracks.hit_ids")
        track = np.repeat(np.arange(len(counts)), counts)
        hits = self.lengths("tracker_hits.x")
        first = (np.cumsum(hits) - hits)[self.event("tracks")[track]]
        place = first + self["tracks.hit_ids"].astype(np.int64)
        if len(place) and place.max() >= hits.sum():
            raise MissingColumn("hit_ids of table tracks name hits that table tracker_hits lacks")
        return track, place

    @cached_property
    def match(self) -> Integers:
        """Index of the particle with at least half of each track's hits; -1 for fakes."""
        track, hit = self.track_hits
        number = len(self["tracks.d0"])
        owner = self.hit_particle[hit]
        pairs, counts = np.unique(np.stack([track, owner]), axis=1, return_counts=True)
        order = np.lexsort((counts, pairs[0]))  # the last of each track has most
        best = np.full(number, -1)
        best[pairs[0][order]] = pairs[1][order]
        shared = np.zeros(number, np.int64)
        shared[pairs[0][order]] = counts[order]
        return np.where(shared >= MATCHING * self.inner_lengths("tracks.hit_ids"), best, -1)

    @cached_property
    def found(self) -> npt.NDArray[np.bool_]:
        """Mask of particles that have a track."""
        found = np.zeros(len(self["particles.particle_id"]), bool)
        found[self.match[self.match >= 0]] = True
        return found

    @cached_property
    def duplicate(self) -> npt.NDArray[np.bool_]:
        """Mask of tracks whose particle has another track with more hits, or as many and a lower index."""
        order = np.lexsort((-self.inner_lengths("tracks.hit_ids"), self.match))
        again = np.zeros(len(order), bool)
        again[order[1:]] = self.match[order[1:]] == self.match[order[:-1]]
        return again & (self.match >= 0)

    @cached_property
    def measured(self) -> tuple[Integers, Integers]:
        """Tracks, without duplicates, of findable particles from the luminous region; and their particles."""
        good = (self.match >= 0) & ~self.duplicate
        good[good] &= (self.findable & (self.radius < 1.0))[self.match[good]]
        track = np.flatnonzero(good)
        return track, self.match[track]

    @cached_property
    def track_eta(self) -> Array:
        return -np.log(np.tan(self["tracks.theta"] / 2))

    @cached_property
    def track_pt(self) -> Array:
        """GeV."""
        return np.sin(self["tracks.theta"]) / np.abs(self["tracks.qop"])

    @cached_property
    def fields(self) -> tuple[Array, Array]:
        """Findable particles below 8 GeV with at least eight hits, and the field that bends them, T.

        The field follows from pT and the radius of the circle x² + y² = ax + by + c through the hits, which
        is fitted by algebraic least squares.
        """
        from_beams = self.findable & (self.pt < 8.0) & (self.radius < 1.0) & (self.hits_of_particles() >= 8)
        chosen = np.flatnonzero(from_beams)
        number = np.full(len(from_beams), -1)
        number[chosen] = np.arange(len(chosen))
        hit = (self.hit_particle >= 0) & (number[self.hit_particle] >= 0)
        owner = number[self.hit_particle[hit]]
        x, y = (self[f"tracker_hits.{axis}"][hit].astype(np.float64) / 1000 for axis in "xy")
        terms = np.stack([x, y, np.ones_like(x)])
        square = x**2 + y**2

        def sums(values: Array) -> Array:
            return np.bincount(owner, values, minlength=len(chosen))

        matrix = np.array([[sums(one * other) for other in terms] for one in terms]).transpose(2, 0, 1)
        right = np.array([sums(one * square) for one in terms]).T
        a, b, c = np.linalg.solve(matrix, right[..., None])[..., 0].T
        radius = np.sqrt(np.maximum(a**2 / 4 + b**2 / 4 + c, 1e-12))  # metres
        return chosen, self.pt[chosen] / (BENDING * m * radius)

    # -- calorimeters ---------------------------------------------------------------------------------

    @cached_property
    def contributions(self) -> tuple[Integers, Array, Array]:
        """Primary ancestor, energy in the ECal, and calibrated energy of each contribution, GeV."""
        counts = self.inner_lengths("calo_hits.contrib_energies")
        cell = np.repeat(np.arange(len(counts)), counts)
        owner = self.particle(self.event("calo_hits")[cell], self["calo_hits.contrib_particle_ids"])
        energy = self["calo_hits.contrib_energies"].astype(np.float64)
        calibrated = energy * np.nan_to_num(physics.calibration(self["calo_hits.detector"]))[cell]
        known = owner >= 0
        ecal = np.where(self["calo_hits.detector"][cell] < HCAL_CODE, energy, 0.0)
        return self.root[owner[known]], ecal[known], calibrated[known]

    def deposited(self, *, calibrated: bool) -> Array:
        """Return the energy of each primary with its descendants: in the ECal's layers, or calibrated."""
        root, ecal, everything = self.contributions
        weights = everything if calibrated else ecal
        return np.bincount(root, weights, minlength=len(self["particles.particle_id"]))
