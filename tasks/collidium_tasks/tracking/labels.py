"""Track ids of an event, of any integer width, as small numbers that fit into a sort key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


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
