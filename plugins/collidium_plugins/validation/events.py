"""Some events of a dataset as flat arrays: stored columns by name, and what follows from several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium import physics
from collidium.physics.constants import BENDING, HCAL_CODE, m

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]

PIXEL_VOLUMES: Final = (16, 17, 18)
#: Part of a track's hits that are of its particle, at least, in ACTS's `TrackTruthMatcher`.
MATCHING: Final = 0.5


class MissingColumn(Exception):
    """A dataset lacks what a quantity is made of."""


class Block:
    """Events of one block.

    ``block["tracks.d0"]`` is a column of all events, one after the other; ``block.event("tracks")`` the
    place of the event of each entry. Everything else is computed when asked for, once.

    Parameters
    ----------
    tables
        Rows of the same events by table, one row per event, with canonical column names.
    events
        How many events there are.
    """

    def __init__(self, tables: Mapping[str, pa.Table], events: int) -> None:
        self.events = events
        self._tables = tables
        self._columns: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """The entries of a column, with those of lists of lists in one array. Raises MissingColumn."""
        if name not in self._columns:
            column: Any = self._column(name)
            while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                column = pc.list_flatten(column)
            self._columns[name] = np.asarray(column)
        return self._columns[name]

    def lengths(self, name: str) -> Integers:
        """The length of each event's list. Raises MissingColumn."""
        return np.asarray(pc.list_value_length(self._column(name)), np.int64)

    def inner_lengths(self, name: str) -> Integers:
        """The length of each list in the lists of a column. Raises MissingColumn."""
        return np.asarray(pc.list_value_length(pc.list_flatten(self._column(name))), np.int64)

    def event(self, table: str) -> Integers:
        """The place of the event of each entry of a table."""
        lengths = self.lengths(f"{table}.{self._tables[table].column_names[1]}") if self.has(table) else None
        if lengths is None:
            raise MissingColumn(f"no table {table}")
        return np.repeat(np.arange(self.events), lengths)

    def has(self, table: str) -> bool:
        """Whether the dataset has the table."""
        return table in self._tables

    def _column(self, name: str) -> pa.ChunkedArray[Any]:
        table, _, column = name.partition(".")
        if not self.has(table):
            raise MissingColumn(f"no table {table}")
        if column not in self._tables[table].column_names:
            raise MissingColumn(f"no column {column} in table {table}")
        found = self._tables[table].column(column)
        if found.null_count:
            raise MissingColumn(f"column {column} of table {table} is withheld")
        return found

    # -- particles ------------------------------------------------------------------------------------

    def particle(self, event: Integers, ids: Array) -> Integers:
        """The place of particles in the table, by event and id; -1 of those that are not there."""
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
        """Distance of particles' vertices from the beams, mm."""
        return np.hypot(self["particles.vx"], self["particles.vy"])

    @cached_property
    def parent(self) -> Integers:
        """The place of each particle's parent; -1 without."""
        return self.particle(self.event("particles"), self["particles.parent_id"].astype(np.uint64))

    @cached_property
    def final(self) -> npt.NDArray[np.bool_]:
        """Particles of the generator that have not decayed in it: primaries that are no primary's parent."""
        primary = self["particles.primary"].astype(bool)
        decayed = np.zeros(len(primary), bool)
        decayed[self.parent[(self.parent >= 0) & primary]] = True
        return primary & ~decayed

    @cached_property
    def root(self) -> Integers:
        """For each particle the primary that it comes from: itself, for a primary."""
        return physics.primary_ancestor(self["particles.primary"], self.parent)

    # -- tracker --------------------------------------------------------------------------------------

    @cached_property
    def hit_particle(self) -> Integers:
        """The place of each hit's particle."""
        return self.particle(self.event("tracker_hits"), self["tracker_hits.particle_id"])

    def hits_of_particles(self, volumes: Sequence[int] = ()) -> Integers:
        """How many hits each particle has, in all volumes or in some."""
        owner = self.hit_particle
        counted = owner >= 0
        if volumes:
            counted &= np.isin(self["tracker_hits.volume_id"], volumes)
        return np.bincount(owner[counted], minlength=len(self["particles.particle_id"]))

    @cached_property
    def findable(self) -> npt.NDArray[np.bool_]:
        """Production's denominator of efficiencies, of primaries alone."""
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
        """For each hit of a track the track's place and the hit's."""
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
        """The place of the particle that at least half of a track's hits are of; -1 without, a fake."""
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
        """Particles that have a track."""
        found = np.zeros(len(self["particles.particle_id"]), bool)
        found[self.match[self.match >= 0]] = True
        return found

    @cached_property
    def duplicate(self) -> npt.NDArray[np.bool_]:
        """Tracks of a particle that has another one with more hits, or with as many and before this one."""
        order = np.lexsort((-self.inner_lengths("tracks.hit_ids"), self.match))
        again = np.zeros(len(order), bool)
        again[order[1:]] = self.match[order[1:]] == self.match[order[:-1]]
        return again & (self.match >= 0)

    @cached_property
    def measured(self) -> tuple[Integers, Integers]:
        """Tracks of findable particles from the beams' crossing, and their particles: not duplicates."""
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
        """Findable particles of 0.5 to 8 GeV and the field, in tesla, that bends their hits on a circle.

        The circle is the algebraic least-squares one, x² + y² = 2ax + 2by + c, of six hits or more.
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
        """For each contribution its particle's primary, its energy, and its calibrated energy, GeV."""
        counts = self.inner_lengths("calo_hits.contrib_energies")
        cell = np.repeat(np.arange(len(counts)), counts)
        owner = self.particle(self.event("calo_hits")[cell], self["calo_hits.contrib_particle_ids"])
        energy = self["calo_hits.contrib_energies"].astype(np.float64)
        calibrated = energy * np.nan_to_num(physics.calibration(self["calo_hits.detector"]))[cell]
        known = owner >= 0
        ecal = np.where(self["calo_hits.detector"][cell] < HCAL_CODE, energy, 0.0)
        return self.root[owner[known]], ecal[known], calibrated[known]

    def deposited(self, *, calibrated: bool) -> Array:
        """What each primary and its descendants left: in the ECal's active layers, or calibrated in all."""
        root, ecal, everything = self.contributions
        weights = everything if calibrated else ecal
        return np.bincount(root, weights, minlength=len(self["particles.particle_id"]))
