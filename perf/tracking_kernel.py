"""How fast the tracking task checks and scores blocks in memory, in hits per second of CPU time.

    python perf/tracking_kernel.py [--events 20] [--repeats 5]

Synthetic events: 150,000 hits of 14,700 particles, 10% noise, an eighth of the hits at -1, two fifths of
the rest spread over neighbouring tracks. No parquet is read: perf/scoring.py measures the whole way. The
plain ways count only which track shares how many hits with which particle: a part of the work.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block, EventRange
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.bins import OF_PARTICLES

HITS = 150_000
PARTICLES = 14_700
FIRST_EVENT = 90_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of several events: predictions and truth of each hit."""

    event_id: npt.NDArray[np.int32]
    hit_id: npt.NDArray[np.int32]
    track_id: npt.NDArray[np.int32]
    particle: npt.NDArray[np.uint32]


def synthetic(events: int, rng: np.random.Generator) -> Columns:
    """Truth, and predictions of a middling reconstruction, with tracks numbered from 0 in each event."""
    hits = events * HITS
    particle = rng.integers(1, PARTICLES + 1, hits).astype(np.uint32)
    track = particle.astype(np.int32) - 1
    moved = rng.random(hits) < 0.4
    track[moved] = (track[moved] + rng.integers(0, 3, int(moved.sum()))) % PARTICLES
    track[rng.random(hits) < 0.125] = -1
    particle[rng.random(hits) < 0.1] = 0
    event_id = np.repeat(np.arange(FIRST_EVENT, FIRST_EVENT + events, dtype=np.int32), HITS)
    return Columns(event_id, np.tile(np.arange(HITS, dtype=np.int32), events), track, particle)


def truth_tables(
    columns: Columns, events: int, weight: bool, rng: np.random.Generator
) -> dict[str, pa.Table]:
    """The prepared truth of these hits."""
    place = columns.particle + (columns.event_id - FIRST_EVENT).astype(np.int64) * (PARTICLES + 1)
    owned = np.bincount(place, minlength=events * (PARTICLES + 1)).reshape(events, -1)[:, 1:].ravel()
    hits = {
        "event_id": columns.event_id.astype(np.uint32),
        "hit_id": columns.hit_id,
        "particle": columns.particle,
    }
    if weight:
        hits["weight"] = np.where(columns.particle > 0, rng.random(len(columns.particle)), 0.0)
    particles = {
        "event_id": np.repeat(np.arange(FIRST_EVENT, FIRST_EVENT + events, dtype=np.uint32), PARTICLES),
        "particle_id": np.tile(np.arange(1, PARTICLES + 1, dtype=np.uint64) << np.uint64(44), events),
        "hits": owned.astype(np.uint32),
        "high_pt": rng.random(len(owned)) < 0.05,
        "accepted": rng.random(len(owned)) < 0.04,
        **{
            name: rng.integers(0, binning.bins + 1, len(owned), np.uint8)
            for name, binning in OF_PARTICLES.items()
        },
    }
    return {"hits": pa.table(hits), "particles": pa.table(particles)}


# -- what submitters send -------------------------------------------------------------------------------


def in_order(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    return {"event_id": columns.event_id, "hit_id": columns.hit_id, "track_id": columns.track_id}


def in_64_bits(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    return {name: array.astype(np.int64) for name, array in in_order(columns, rng).items()}


def unique_tracks(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    wide = in_64_bits(columns, rng)
    track = np.where(wide["track_id"] < 0, -1, wide["event_id"] * 1_000_000 + wide["track_id"])
    return {**wide, "track_id": track}


def scattered_tracks(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    names = rng.integers(0, 2**62, PARTICLES)
    rows = in_64_bits(columns, rng)
    return {**rows, "track_id": np.where(rows["track_id"] < 0, -1, names[rows["track_id"]])}


def missing_hits(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    kept = rng.random(len(columns.hit_id)) < 0.8
    return {name: array[kept] for name, array in in_order(columns, rng).items()}


def shuffled_rows(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    order = np.lexsort((rng.random(len(columns.hit_id)), columns.event_id))
    return {name: array[order] for name, array in in_order(columns, rng).items()}


def random_tracks(columns: Columns, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
    track = rng.integers(0, PARTICLES, len(columns.hit_id)).astype(np.int32)
    return {**in_order(columns, rng), "track_id": track}


KINDS = (in_order, in_64_bits, unique_tracks, scattered_tracks, missing_hits, shuffled_rows, random_tracks)


# -- the plain ways -------------------------------------------------------------------------------------


def dictionaries(track: npt.NDArray[np.integer], particle: npt.NDArray[np.integer]) -> int:
    """Correct tracks, counted with Python's Counter."""
    owned = Counter(particle.tolist())
    shared: dict[int, Counter[int]] = {}
    for one_track, one_particle in zip(track.tolist(), particle.tolist(), strict=True):
        if one_track >= 0:
            shared.setdefault(one_track, Counter())[one_particle] += 1
    correct = 0
    for counter in shared.values():
        best, count = counter.most_common(1)[0]
        correct += best != 0 and 2 * count >= counter.total() and 2 * count >= owned[best]
    return correct


def lexsort(track: npt.NDArray[np.integer], particle: npt.NDArray[np.integer]) -> int:
    """Pairs of track and particle, counted after np.lexsort."""
    order = np.lexsort((particle, track))
    pairs = np.stack([track[order], particle[order]])
    starts = np.flatnonzero(np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)))
    return len(np.diff(starts, append=len(track)))


def unique_keys(track: npt.NDArray[np.integer], particle: npt.NDArray[np.integer]) -> int:
    """Pairs of track and particle, counted by np.unique of 64-bit keys."""
    keys = (track.astype(np.int64) << 32) | particle.astype(np.int64)
    return len(np.unique(keys, return_counts=True)[0])


PLAIN_WAYS = (dictionaries, lexsort, unique_keys)


# -- measuring ------------------------------------------------------------------------------------------


def cpu_seconds(action: Callable[[], object], repeats: int) -> float:
    """Median CPU time of an action."""

    def once() -> float:
        start = time.process_time()
        action()
        return time.process_time() - start

    return float(np.median([once() for _ in range(repeats)]))


def rates(events: int, repeats: int) -> Iterator[tuple[str, float, float]]:
    """What was measured, million hits/s of check and score together, and of check alone (nan: none)."""
    rng = np.random.default_rng(42)
    columns = synthetic(events, rng)
    task = TrackingTask()
    hits = events * HITS / 1e6
    for weight in (False, True):
        truth = truth_tables(columns, events, weight, rng)
        for kind in KINDS:
            predictions = pa.table(kind(columns, rng))
            block = Block(EventRange(FIRST_EVENT, FIRST_EVENT + events), predictions, truth)
            assert task.check(block) == []
            check = cpu_seconds(lambda block=block: task.check(block), repeats)
            score = cpu_seconds(lambda block=block: task.score(block), repeats)
            name = kind.__name__.replace("_", " ") + (", weights" if weight else "")
            yield name, hits / (check + score), hits / check
    track, particle = columns.track_id[:HITS], columns.particle[:HITS]
    for way in PLAIN_WAYS:
        seconds = cpu_seconds(lambda way=way: way(track, particle), repeats)
        yield f"plain: {way.__name__.replace('_', ' ')}", HITS / 1e6 / seconds, float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure checking and scoring of tracks.")
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print("| predictions | check and score, M hits/s | check alone, M hits/s |\n|---|---|---|")
    for name, both, check in rates(options.events, options.repeats):
        print(f"| {name} | {both:.1f} | {'' if np.isnan(check) else f'{check:.0f}'} |")


if __name__ == "__main__":
    main()
