"""Matching of tracks and particles by the double-majority rule, one event at a time.

The rule is that of the TrackML challenge (arXiv:1904.06778, section 4), with "at least half" for "more than
half". Implementation: track ids, of any integer type, are mapped to small labels. Each hit becomes one key,
label times 2^bits plus particle. Sorting the keys groups the hits that a track and a particle share; metrics
follow from the lengths of these runs.

Per hit, ``np.unique`` takes twice as long and Arrow's ``value_counts`` six times.
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

#: Minimum number of a particle's hits in a track that reconstructs it; all hits if it has fewer.
MIN_HITS = 3
#: Minimum number of hits of tracks that fake and duplicate rates count.
COUNTED_HITS = 4


class Buffers:
    """Named arrays that are reused; not thread-safe."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, length: int, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """Return an array with arbitrary content, valid until ``name`` is requested again."""
        array = self._arrays.get(name)
        if array is None or len(array) < length or array.dtype != dtype:
            array = self._arrays[name] = np.empty(length + length // 8, dtype)
        return array[:length]


#: uint32, unless there are more labels than the requested limit.
LabelArray = npt.NDArray[np.uint32 | np.uint64]

#: Odd multipliers close to 2^64 over the golden ratio and its powers, for multiplicative hashing
#: (Knuth, The Art of Computer Programming, volume 3, section 6.4).
MULTIPLIERS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7)


@dataclass(frozen=True, slots=True)
class Labels:
    """The label of each hit's track: a number below ``count``, or ``count`` for hits without a track.

    Labels are equal if and only if track ids are equal. Not every label has to occur.
    """

    of_hits: LabelArray
    count: int
    #: Track id of label 0 if labels are differences to it, else the track id of each label.
    names: int | npt.NDArray[np.uint64]

    def track_ids(self, labels: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the track ids of labels."""
        if isinstance(self.names, int):
            return labels + np.uint64(self.names)
        return self.names[labels]


def label_tracks(track_id: npt.NDArray[np.integer[Any]], limit: int, buffers: Buffers) -> Labels:
    """Return labels of track ids, which are -1 or more; at most ``limit`` labels if possible.

    Labels are differences to the smallest id if these are small, which is the usual case; else positions in a
    hash table; else ranks. ``of_hits`` may be in ``buffers``.
    """
    if not len(track_id) or (largest := int(track_id.max())) < 0:
        return Labels(np.zeros(len(track_id), np.uint32), 0, 0)
    wide = track_id if track_id.dtype.itemsize >= 4 else track_id.astype(np.int32)
    # As an unsigned integer, -1 is the maximum, so the minimum is the smallest track id.
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
    """Return ``unsigned - smallest``, and the largest difference plus one for ids of -1."""
    labels = buffers.array("labels", len(unsigned), np.uint32)
    if largest < 2**32 - 1:
        # Ids fit in 32 bits, and the lower 32 bits of -1 are still the maximum.
        np.copyto(labels, unsigned, casting="unsafe")
        np.subtract(labels, np.uint32(smallest), out=labels)
        return np.minimum(labels, np.uint32(largest - smallest + 1), out=labels)
    differences = buffers.array("differences", len(unsigned), np.uint64)
    np.subtract(unsigned, np.uint64(smallest), out=differences)
    np.minimum(differences, np.uint64(largest - smallest + 1), out=differences)
    np.copyto(labels, differences, casting="same_kind")
    return labels


def _hashed(ids: npt.NDArray[np.uint64], unassigned: npt.NDArray[np.bool_], limit: int) -> Labels | None:
    """Return positions in three hash tables, each half as large as the previous; None if they do not suffice.

    Each id is written to its position. Of ids with the same position one remains; the others try the next
    table. Different ids never get the same label.
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
    """Return ranks of ids: slow, for events with many tracks and scattered ids."""
    names, ranks = np.unique(ids, return_inverse=True)
    labels = ranks.astype(np.uint64)
    labels[unassigned] = len(names)
    return Labels(labels, len(names), names)


@dataclass(frozen=True, slots=True)
class Matched:
    """The tracks that a particle dominates, one entry each, in the order of labels.

    ``particle`` is numbered from 1, ``shared`` is the number of the track's hits of that particle, ``size``
    the number of all its hits.
    """

    label: LabelArray
    particle: Integers
    shared: Lengths
    size: Lengths
    correct: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Counts and sums of hit weights of one event, from which metrics are computed."""

    event_id: int
    tracks: int
    #: Tracks of at least COUNTED_HITS hits; fakes and duplicates are among these.
    counted_tracks: int
    fake_tracks: int
    particles: int
    duplicated_particles: int
    high_pt_particles: int
    high_pt_reconstructed: int
    accepted_particles: int
    #: Accepted particles with a correct track.
    accepted_found: int
    found_weight: float
    total_weight: float
    #: A sample of track ids (:func:`_sample`); empty without tracks.
    track_ids: tuple[int, ...]
    #: Bin counts by curve.
    bins: Mapping[str, BinCounts]


class Matcher:
    """Matches events, reusing memory; not thread-safe."""

    def __init__(self) -> None:
        self._buffers = Buffers()

    def match(self, event: Event) -> EventCounts:
        """Return the counts of an event, whose rows have no problems."""
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
        """Sort the hits by track and particle, and return the runs of equal pairs."""
        kind = labels.of_hits.dtype.type
        keys: LabelArray = self._buffers.array("keys", len(particle), kind)
        np.left_shift(labels.of_hits, kind(bits), out=keys)
        np.bitwise_or(keys, particle, out=keys)
        keys.sort()
        # Unassigned hits have the largest label, so they are at the end.
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
        """Return the weight of the dominating particles' hits in correct tracks, and of all hits.

        Both sums are over the same array in the same order, so they are equal for a perfect submission.
        """
        if event.weight is None:
            return float(matched.shared[matched.correct].sum()), float(event.particle_hits.sum())
        # Tracks that are not correct keep owner 0, which is noise and has weight 0.
        owner = self._buffers.array("owner", labels.count + 1, np.uint32)
        owner.fill(0)
        owner[matched.label[matched.correct]] = matched.particle[matched.correct]
        owners = self._buffers.array("owners", len(particle), np.uint32)
        # np.take needs no further memory, and is fastest, with indices of this type and mode.
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
    """Pairs of a track and a particle that share hits, sorted by label and particle; one entry per pair."""

    label: LabelArray
    particle: LabelArray
    shared: Lengths
    #: Index of the last run of each track, shape (tracks,).
    last_of_track: Integers
    #: Number of hits of the run's track.
    track_size: Lengths

    @classmethod
    def of(cls, keys: LabelArray, changes: npt.NDArray[np.bool_], bits: int) -> _Runs:
        """Return the runs of sorted keys; ``changes`` is a buffer of the same length."""
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
    """Return the index of the last entry of each run of equal values."""
    np.not_equal(values[1:], values[:-1], out=changes[:-1])
    changes[-1:] = True
    return np.flatnonzero(changes)


def _lengths(ends: Integers) -> Lengths:
    """Return the lengths of consecutive runs from the indices of their last entries."""
    lengths = np.empty(len(ends), np.int32)
    lengths[:1] = ends[:1] + 1
    np.subtract(ends[1:], ends[:-1], out=lengths[1:], casting="same_kind")
    return lengths


def _max_labels(hits: int, bits: int) -> int:
    """Return the number of labels that fit in 32-bit keys with ``bits`` for particles, and in memory."""
    return min((1 << (32 - bits)) - 1, max(2**12, 8 * hits))


def _dominated(runs: _Runs, particle_hits: Integers) -> Matched:
    """Return the tracks of which a particle owns at least half the hits.

    If two particles own exactly half, the one that makes the track correct dominates, else the smaller one.
    """
    candidates = np.flatnonzero((runs.shared >= runs.track_size - runs.shared) & (runs.particle > 0))
    # At most two candidates share a track. They are neighbours, with the smaller particle first.
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
    """Return whether each candidate holds at least half the hits of its particle."""
    owned = particle_hits[runs.particle[candidates] - 1]
    correct: npt.NDArray[np.bool_] = 2 * runs.shared[candidates].astype(np.int64) >= owned
    return correct


def _distinct(particles: Integers, wanted: npt.NDArray[np.bool_]) -> int:
    """Return the number of distinct ``particles`` that are wanted."""
    found = np.zeros(len(wanted), np.bool_)
    found[particles - 1] = True
    return int(np.count_nonzero(found & wanted))


def _sample(track_ids: npt.NDArray[np.uint64]) -> tuple[int, ...]:
    """Return the smallest, the largest and the min-hashed track id.

    Events with many equal track ids likely share one of the three.

    Source of min-wise hashing: A. Broder, On the resemblance and containment of documents (1997).
    """
    if not len(track_ids):
        return ()
    drawn = track_ids[np.argmin(track_ids * np.uint64(0x9E3779B97F4A7C15))]
    return int(track_ids.min()), int(track_ids.max()), int(drawn)
