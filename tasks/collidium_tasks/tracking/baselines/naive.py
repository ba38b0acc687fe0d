"""The simplest baseline: hits in the same direction from the origin form a track."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium_tasks.tracking.baselines import EventHits, events_of, predictions

#: Bins in azimuth and in pseudorapidity, the latter between -4 and 4.
PHI_BINS = 64
ETA_BINS = 32
LARGEST_ETA = 4.0

#: A track needs so many hits.
MIN_HITS = 3


def reconstruct(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tracks of every event in the table ``tracker_hits``, which needs x, y and z (mm).

    Returns event_id, hit_id and track_id, one row per hit; -1 where a bin has fewer than MIN_HITS hits.
    """
    return predictions((event, _tracks(event)) for event in events_of(tables["tracker_hits"]))


def _tracks(event: EventHits) -> npt.NDArray[np.int64]:
    bins = _direction_bin(event)
    hits_in_bin = np.bincount(bins, minlength=PHI_BINS * ETA_BINS)
    return np.where(hits_in_bin[bins] >= MIN_HITS, bins, -1)


def _direction_bin(event: EventHits) -> npt.NDArray[np.int64]:
    """Number of the bin in azimuth and pseudorapidity that each hit lies in, shape (hits,)."""
    phi = (np.arctan2(event.y, event.x) / (2 * np.pi)) % 1.0
    eta = np.arcsinh(event.z / np.maximum(np.hypot(event.x, event.y), 1e-9))
    phi_bin = np.minimum(np.floor(phi * PHI_BINS), PHI_BINS - 1)
    eta_bin = np.clip(np.floor((eta / LARGEST_ETA + 1) / 2 * ETA_BINS), 0, ETA_BINS - 1)
    return (eta_bin * PHI_BINS + phi_bin).astype(np.int64)
