"""Synthetic events have the size and columns of hosted ones, and are reproducible."""

from __future__ import annotations

import numpy as np
import pytest

from collidium.contracts import FIELD_TESLA
from collidium.datasets.schemas import SCHEMAS
from collidium.testing.synthetic import SyntheticEvents


def test_an_event_has_the_requested_number_of_hits() -> None:
    event = SyntheticEvents(hits=30_000, noise=0.2).event(5)
    hits, particles = event["tracker_hits"], event["particles"]
    assert {len(column) for column in hits.values()} == {30_000}
    assert np.mean(hits["particle_id"] == 0) == pytest.approx(0.2)
    known, counts = np.unique(hits["particle_id"][hits["particle_id"] > 0], return_counts=True)
    assert np.isin(known, particles["particle_id"]).all()
    assert counts.sum() == particles["num_tracker_hits"].sum()


@pytest.mark.parametrize(("hits", "noise"), [(1, 0.0), (1, 1.0), (7, 0.5), (1000, 0.0)])
def test_small_events_are_valid(hits: int, noise: float) -> None:
    event = SyntheticEvents(hits=hits, noise=noise).event(0)
    assert {len(column) for column in event["tracker_hits"].values()} == {hits}
    assert all(np.isfinite(column).all() for table in event.values() for column in table.values())


def test_hits_lie_on_the_helix_of_their_particle() -> None:
    event = SyntheticEvents(hits=5_000, noise=0).event(1)
    hits, particles = event["tracker_hits"], event["particles"]
    one = particles["particle_id"][3]
    pt = np.hypot(particles["px"][3], particles["py"][3])
    curvature = -particles["charge"][3] * FIELD_TESLA * 0.299792458e-3 / pt
    angle = np.arctan2(particles["py"][3], particles["px"][3])
    x, y = (hits[name][hits["particle_id"] == one] for name in ("true_x", "true_y"))
    centre = np.array([-np.sin(angle), np.cos(angle)]) / curvature
    assert len(x) >= 3
    assert np.hypot(x - centre[0], y - centre[1]) == pytest.approx(
        np.full(len(x), 1 / abs(curvature)), rel=1e-4
    )


def test_events_depend_only_on_seed_and_id() -> None:
    events = SyntheticEvents(hits=2_000)
    tables = events.tables(range(3, 6))
    again = events.tables(range(5, 6))
    for name, table in tables.items():
        assert table.schema == SCHEMAS[name]
        assert table.slice(2).equals(again[name])
    other = SyntheticEvents(hits=2_000, seed=43).tables(range(5, 6))
    assert not other["tracker_hits"].equals(again["tracker_hits"])


@pytest.mark.parametrize(("hits", "noise"), [(0, 0.1), (10, -0.1), (10, 1.1)])
def test_invalid_sizes_are_rejected(hits: int, noise: float) -> None:
    with pytest.raises(ValueError, match="no event has"):
        SyntheticEvents(hits=hits, noise=noise)
