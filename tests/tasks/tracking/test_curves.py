"""Scores in bins, worked out by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Block, Curve, EventRange
from collidium_tasks.tracking import TrackingTask

TASK = TrackingTask()
#: Of each particle: pT, pz / pT, production radius, whether it is primary, hits.
PARTICLES = [
    (0.25, 0.0, 0.0, True, 7),
    (1.2, 0.1, 0.0, True, 7),
    (1.2, -2.0, 3.0, True, 6),
    (4.0, 0.1, 40.0, False, 7),
    (4.0, 0.1, 0.0, True, 5),
    (4.0, 50.0, 0.0, True, 7),
]
#: Of each hit the particle, and the track it is submitted for: the third has two, the last of all is a fake.
HITS = np.repeat(np.arange(1, 7), [row[4] for row in PARTICLES])
TRACKS = {1: 1, 2: 2, 3: 3, 4: 4, 5: -1, 6: -1}


def curves() -> dict[str, Curve]:
    pt, slope, radius, primary, _ = map(np.array, zip(*PARTICLES, strict=True))
    noise = 4

    def lists(values: object) -> pa.Array:
        return pa.array([np.asarray(values)])

    tables = {
        "tracker_hits": pa.table(
            {
                "event_id": pa.array([0], pa.uint32()),
                "particle_id": lists(np.append(HITS, [0] * noise).astype(np.uint64)),
            }
        ),
        "particles": pa.table(
            {
                "event_id": pa.array([0], pa.uint32()),
                "particle_id": lists(np.arange(1, 7, dtype=np.uint64)),
                **{name: lists(value) for name, value in {"px": pt, "py": 0 * pt, "pz": pt * slope}.items()},
                **{name: lists(value) for name, value in {"vx": radius, "vy": 0 * radius}.items()},
                "primary": lists(primary.astype(bool)),
            }
        ),
    }
    tracks = np.array([TRACKS[particle] for particle in HITS.tolist()] + [9] * noise)
    third = np.flatnonzero(HITS == 3)
    tracks[third[:2]] = 5  # too short to count
    sent = {"event_id": np.zeros(len(tracks), np.int64), "hit_id": np.arange(len(tracks))}
    block = Block(
        EventRange(0, 1),
        pa.table({**sent, "track_id": tracks}),
        TASK.prepare_with(tables, {"hits": "uniform"}),
    )
    return {curve.name: curve for curve in TASK.curves(TASK.score(block))}


def bins(curve: Curve) -> dict[float, tuple[int, int]]:
    """Lower edge -> part and whole, of bins with entries."""
    rows = zip(curve.edges, curve.part, curve.whole, strict=False)
    return {round(low, 3): (part, whole) for low, part, whole in rows if whole}


def test_efficiencies_are_of_accepted_particles_in_their_bins() -> None:
    found = curves()
    assert bins(found["efficiency_pt"]) == {0.2: (1, 1), 1: (2, 2)}
    assert bins(found["efficiency_eta"]) == {-1.5: (1, 1), 0: (1, 1)}
    assert bins(found["efficiency_radius"]) == {0: (1, 1), 1: (1, 1), 30: (1, 1)}


def test_rates_are_of_tracks_in_bins_of_their_lengths() -> None:
    found = curves()
    assert bins(found["fake_rate_length"]) == {3.5: (1, 2), 6.5: (0, 3)}
    assert bins(found["duplicate_rate_length"]) == {3.5: (0, 2), 6.5: (0, 3)}
    assert found["fake_rate_length"].events[0] == 1
