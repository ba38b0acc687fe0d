"""Which particle dominates which track: the double-majority rule, one event at a time.

Track ids, of any integer width, become small numbers that fit into a sort key. Each hit becomes one number,
track label times 2^bits plus particle. Sorting these puts the hits that a track and a particle share next to
each other; what the metrics need are the lengths of such runs. The rule is that of the TrackML challenge
(arXiv:1904.06778, section 4) with "at least" for "more than".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking import bins
from collidium_tasks.tracking.bins import BinCounts
from collidium_tasks.tracking.events import Event, rows_of_hits

Scalar = TypeVar("Scalar", bound=np.generic)
Integers = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]

#: Hits of a particle that a track needs to have reconstructed it; all of them, if it has fewer.
MIN_HITS = 3
#: Hits of the tracks that rates of fakes and duplicates count.
COUNTED_HITS = 4


class Buffers:
    """Named arrays that grow and are handed out again; for one thread."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, length: int, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """An array of that length with whatever content, valid until ``name`` is asked for again."""
        array = self._arrays.get(name)
        if array is None or len(array) < length or array.dtype != dtype:
            array = self._arrays[name] = np.empty(length + length // 8, dtype)
        return array[:length]


#: Label arrays are uint32 unless there are more labels than asked for.
LabelArray = npt.NDArray[np.uint32 | np.uint64]

#: Odd multipliers close to 2^64 over the golden ratio and its powers, for multiplicative hashing
#: (Knuth, The Art of Computer Programming, volume 3, section 6.4).
MULTIPLIERS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7)


@dataclass(frozen=True, slots=True)
class Labels:
    """The track of each hit as a number below ``count``; hits that belong to none have ``count`` itself.

    Equal track ids have equal labels and different ones different labels; not every label need occur.
    """

    of_hits: LabelArray
    count: int
    #: Track id of label 0 where labels are differences to it, else the track id of each label.
    names: int | npt.NDArray[np.uint64]

    def track_ids(self, labels: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The track ids behind some labels."""
        if isinstance(self.names, int):
            return labels + np.uint64(self.names)
        return self.names[labels]


def label_tracks(track_id: npt.NDArray[np.integer[Any]], limit: int, buffers: Buffers) -> Labels:
    """Labels of track ids that are -1 or more, at most ``limit`` of them if that can be had.

    Differences to the smallest id where those are small (the usual case); else places in a hash table;
    else ranks. ``of_hits`` may lie in ``buffers``.
    """
    if not len(track_id) or (largest := int(track_id.max())) < 0:
        return Labels(np.zeros(len(track_id), np.uint32), 0, 0)
    wide = track_id if track_id.dtype.itemsize >= 4 else track_id.astype(np.int32)
    # Seen as unsigned, -1 is the largest number of all, so the minimum is that of the tracks.
    unsigned = wide.view(np.uint32 if wide.dtype.itemsize == 4 else np.uint64)
    smallest = int(unsigned.min())
    if largest - smallest < limit:
        return Labels(_differences(unsigned, smallest, largest, buffers), largest - smallest + 1, smallest)
    ids = wide.astype(np.int64).view(np.uint64) if wide.dtype.kind == "i" else wide.astype(np.uint64)
    unassigned = track_id == -1 if wide.dtype.kind == "i" else np.zeros(len(track_id), np.bool_)
    return _hashed(ids, unassigned, limit) or _ranks(ids, unassigned)


def _differences(
    unsigned: npt.NDArray[Any], smallest: int, largest: int, buffers: Buffers
) -> npt.NDArray[np.uint32]:
    """``unsigned - smallest``, and one more than the largest difference for what was -1."""
    labels = buffers.array("labels", len(unsigned), np.uint32)
    if largest < 2**32 - 1:
        # The low half of each id holds all of it, and of -1 still the largest number of all.
        np.copyto(labels, unsigned, casting="unsafe")
        np.subtract(labels, np.uint32(smallest), out=labels)
        return np.minimum(labels, np.uint32(largest - smallest + 1), out=labels)
    differences = buffers.array("differences", len(unsigned), np.uint64)
    np.subtract(unsigned, np.uint64(smallest), out=differences)
    np.minimum(differences, np.uint64(largest - smallest + 1), out=differences)
    np.copyto(labels, differences, casting="same_kind")
    return labels


def _hashed(ids: npt.NDArray[np.uint64], unassigned: npt.NDArray[np.bool_], limit: int) -> Labels | None:
    """Places in three hash tables, each half as large as the one before; None when they do not suffice.

    Each id is written to its place, so that one of those that share a place stays; the others go on to the
    next table. No id is taken for another.
    """
    bits = (limit + 1).bit_length() - 1
    if bits <= len(MULTIPLIERS):
        return None
    names = np.zeros(2**bits, np.uint64)
    labels = np.empty(len(ids), np.uint32)
    pending: npt.NDArray[np.intp] | slice = slice(None)
    offset = 0
    for number, multiplier in enumerate(MULTIPLIERS, start=1):
        wanted = ids[pending]
        places = (wanted * np.uint64(multiplier)) >> np.uint64(64 - bits + number)
        places += np.uint64(offset)
        labels[pending] = places
        names[places] = wanted
        missed = np.flatnonzero(names[places] != wanted)
        pending = missed if isinstance(pending, slice) else pending[missed]
        offset += 2 ** (bits - number)
        if not len(pending):
            labels[unassigned] = offset
            return Labels(labels, offset, names)
    return None


def _ranks(ids: npt.NDArray[np.uint64], unassigned: npt.NDArray[np.bool_]) -> Labels:
    """Places in the sorted list of ids: slow, for events with very many tracks and scattered ids."""
    names, ranks = np.unique(ids, return_inverse=True)
    labels = ranks.astype(np.uint64)
    labels[unassigned] = len(names)
    return Labels(labels, len(names), names)


@dataclass(frozen=True, slots=True)
class Matched:
    """The tracks that a particle dominates; one entry for each such track, in the order of labels.

    ``particle`` counts from 1, ``shared`` is the number of the track's hits that the particle owns, ``size``
    that of all its hits.
    """

    label: LabelArray
    particle: Integers
    shared: Lengths
    size: Lengths
    correct: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EventCounts:
    """What the metrics need of one event; weights are those of hits."""

    event_id: int
    tracks: int
    #: Those of at least COUNTED_HITS hits, as are fakes and duplicates.
    counted_tracks: int
    fake_tracks: int
    particles: int
    duplicated_particles: int
    high_pt_particles: int
    high_pt_reconstructed: int
    accepted_particles: int
    #: Of those with a correct track.
    accepted_found: int
    found_weight: float
    total_weight: float
    #: Some of the event's track ids: the smallest, the largest, one drawn by a hash; none without tracks.
    track_ids: tuple[int, ...]
    #: By the name of the curve.
    bins: Mapping[str, BinCounts]


class Matcher:
    """Matches events one after the other, using its memory again; for one thread."""

    def __init__(self) -> None:
        self._buffers = Buffers()

    def match(self, event: Event) -> EventCounts:
        """Count the tracks and particles of an event whose rows :mod:`.checks` found in order."""
        rows = None if event.same_hits else rows_of_hits(event.true_hit_id, event.hit_id)
        particle = event.particle if rows is None else np.take(event.particle, rows)
        bits = len(event.particle_hits).bit_length()
        labels = label_tracks(event.track_id, _max_labels(len(particle), bits), self._buffers)
        runs = self._runs(labels, particle, bits)
        matched = _dominated(runs, event.particle_hits.astype(np.int64))
        found, total = self._weights(event, rows, particle, labels, matched)
        track_labels = runs.label[runs.last_of_track]
        lengths = runs.track_size[runs.last_of_track]
        counted_tracks = int(np.count_nonzero(lengths >= COUNTED_HITS))
        is_counted = matched.size >= COUNTED_HITS
        counted, counted_size = matched.particle[is_counted], matched.size[is_counted]
        enough = matched.shared >= np.minimum(event.particle_hits[matched.particle - 1], MIN_HITS)
        in_track = np.zeros(len(event.particle_hits), np.bool_)
        in_track[matched.particle[matched.correct] - 1] = True
        tracks_of = np.bincount(counted)
        return EventCounts(
            event_id=event.event_id,
            tracks=len(track_labels),
            counted_tracks=counted_tracks,
            fake_tracks=counted_tracks - len(counted),
            particles=len(event.particle_hits),
            duplicated_particles=int(np.count_nonzero(tracks_of > 1)),
            high_pt_particles=int(np.count_nonzero(event.high_pt)),
            high_pt_reconstructed=_distinct(matched.particle[enough], event.high_pt),
            accepted_particles=int(np.count_nonzero(event.accepted)),
            accepted_found=int(np.count_nonzero(in_track & event.accepted)),
            found_weight=found,
            total_weight=total,
            track_ids=_sample(labels.track_ids(track_labels.astype(np.uint64))),
            bins={
                **bins.of_particles(event.bins, in_track),
                **bins.of_tracks(lengths, matched.size, counted_size[tracks_of[counted] > 1]),
            },
        )

    def _runs(self, labels: Labels, particle: npt.NDArray[np.uint32], bits: int) -> _Runs:
        """Sort the hits by track and particle and measure the runs of equal pairs."""
        kind = labels.of_hits.dtype.type
        keys: LabelArray = self._buffers.array("keys", len(particle), kind)
        np.left_shift(labels.of_hits, kind(bits), out=keys)
        np.bitwise_or(keys, particle, out=keys)
        keys.sort()
        # Unassigned hits have the largest label, so they stand at the end.
        keys = keys[: int(np.searchsorted(keys, kind(labels.count << bits)))]
        return _Runs.of(keys, self._buffers.array("changes", len(keys), np.bool_), bits)

    def _weights(
        self,
        event: Event,
        rows: Integers | None,
        particle: npt.NDArray[np.uint32],
        labels: Labels,
        matched: Matched,
    ) -> tuple[float, float]:
        """Weight of the dominating particles' hits in correct tracks, and of all hits of the event.

        Both are summed over the same places of one array, so a perfect answer gives equal numbers.
        """
        if event.weight is None:
            return float(matched.shared[matched.correct].sum()), float(event.particle_hits.sum())
        # Labels of no correct track keep owner 0: that is noise, which weighs nothing.
        owner = self._buffers.array("owner", labels.count + 1, np.uint32)
        owner.fill(0)
        owner[matched.label[matched.correct]] = matched.particle[matched.correct]
        owners = self._buffers.array("owners", len(particle), np.uint32)
        # Without memory of its own, and fastest with places of this type and mode; all of them are within.
        places = self._buffers.array("places", len(particle), np.intp)
        np.copyto(places, labels.of_hits, casting="same_kind")
        np.take(owner, places, out=owners, mode="wrap")
        found = self._buffers.array("found", len(particle), np.bool_)
        np.equal(owners, particle, out=found)
        if rows is not None:
            in_order = np.zeros(len(event.particle), np.bool_)
            in_order[rows] = found
            found = in_order
        weights = self._buffers.array("weights", len(event.weight), np.float64)
        weights[:] = event.weight
        total = float(weights.sum())
        weights *= found
        return float(weights.sum()), total


@dataclass(frozen=True, slots=True)
class _Runs:
    """Hits shared by one track and one particle, sorted by label and particle; one entry for each pair."""

    label: LabelArray
    particle: LabelArray
    shared: Lengths
    #: The run with which each track ends, shape (tracks,).
    last_of_track: Integers
    #: Hits of the run's track.
    track_size: Lengths

    @classmethod
    def of(cls, keys: LabelArray, changes: npt.NDArray[np.bool_], bits: int) -> _Runs:
        """Of sorted keys; ``changes`` is memory, as long as they are."""
        kind = keys.dtype.type
        ends = _ends(keys, changes)
        pairs = keys[ends]
        label = pairs >> kind(bits)
        last = _ends(label, changes[: len(label)])
        return cls(
            label=label,
            particle=pairs & kind((1 << bits) - 1),
            shared=_lengths(ends),
            last_of_track=last,
            track_size=np.repeat(_lengths(ends[last]), _lengths(last)),
        )


def _ends(values: LabelArray, changes: npt.NDArray[np.bool_]) -> Integers:
    """Where runs of equal values end: the place of the last of each."""
    np.not_equal(values[1:], values[:-1], out=changes[:-1])
    changes[-1:] = True
    return np.flatnonzero(changes)


def _lengths(ends: Integers) -> Lengths:
    """The lengths of runs that follow each other, from where they end."""
    lengths = np.empty(len(ends), np.int32)
    lengths[:1] = ends[:1] + 1
    np.subtract(ends[1:], ends[:-1], out=lengths[1:], casting="same_kind")
    return lengths


def _max_labels(hits: int, bits: int) -> int:
    """How many labels leave ``bits`` of a 32-bit key to particles, and memory in proportion to the hits."""
    return min((1 << (32 - bits)) - 1, max(2**12, 8 * hits))


def _dominated(runs: _Runs, particle_hits: Integers) -> Matched:
    """The tracks of which a particle owns at least half the hits.

    Where two own exactly half, the one that makes the track correct is taken, else the smaller.
    """
    candidates = np.flatnonzero((runs.shared >= runs.track_size - runs.shared) & (runs.particle > 0))
    # At most two candidates share a track, and then they are neighbours, the smaller particle first.
    label = runs.label[candidates]
    tied = np.flatnonzero(label[1:] == label[:-1])
    first, second = (_correct(runs, candidates[tied + number], particle_hits) for number in (0, 1))
    candidates = np.delete(candidates, np.where(second & ~first, tied, tied + 1))
    return Matched(
        label=runs.label[candidates],
        particle=runs.particle[candidates].astype(np.int64),
        shared=runs.shared[candidates],
        size=runs.track_size[candidates],
        correct=_correct(runs, candidates, particle_hits),
    )


def _correct(runs: _Runs, candidates: Integers, particle_hits: Integers) -> npt.NDArray[np.bool_]:
    """Whether some runs hold at least half the hits of their particle."""
    owned = particle_hits[runs.particle[candidates] - 1]
    correct: npt.NDArray[np.bool_] = 2 * runs.shared[candidates].astype(np.int64) >= owned
    return correct


def _distinct(particles: Integers, wanted: npt.NDArray[np.bool_]) -> int:
    """How many of the wanted particles are among those given, each counted once."""
    found = np.zeros(len(wanted), np.bool_)
    found[particles - 1] = True
    return int(np.count_nonzero(found & wanted))


def _sample(track_ids: npt.NDArray[np.uint64]) -> tuple[int, ...]:
    """Three of an event's track ids such that events with many ids in common likely share one of the three.

    The id with the smallest hash is the same in two events unless it is missing from one of them (min-wise
    hashing: Broder, On the resemblance and containment of documents, 1997).
    """
    if not len(track_ids):
        return ()
    drawn = track_ids[np.argmin(track_ids * np.uint64(0x9E3779B97F4A7C15))]
    return int(track_ids.min()), int(track_ids.max()), int(drawn)
