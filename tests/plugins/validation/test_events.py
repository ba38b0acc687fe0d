"""What follows from several columns, of events made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from collidium_plugins.validation.events import EventBlock, MissingColumn
from collidium_plugins.validation.histograms import Accumulator
from collidium_plugins.validation.quantities import QUANTITIES


def particles(*events: list[dict[str, Any]]) -> pa.Table:
    """Particles 1, 2, … of each event, charged primaries of 2 GeV from the origin unless given."""
    usual = {
        "pdg_id": 211,
        "charge": 1.0,
        "px": 2.0,
        "py": 0.0,
        "pz": 0.5,
        "vx": 0.0,
        "vy": 0.0,
        "vz": 0.0,
        "primary": True,
        "parent_id": -1,
    }
    columns: dict[str, Any] = {
        name: [[one.get(name, value) for one in event] for event in events] for name, value in usual.items()
    }
    columns["particle_id"] = pa.array(
        [list(range(1, len(event) + 1)) for event in events], pa.list_(pa.uint64())
    )
    return pa.table({"event_id": range(len(events)), **columns})


def hits(*owners: list[int]) -> pa.Table:
    """Hits of particles, all in the pixels' barrel."""
    ids = pa.array(owners, pa.list_(pa.uint64()))
    at = [[1.0] * len(event) for event in owners]
    volumes = [[17] * len(event) for event in owners]
    return pa.table({"event_id": range(len(owners)), "x": at, "particle_id": ids, "volume_id": volumes})


def tracks(*hit_ids: list[list[int]]) -> pa.Table:
    return pa.table(
        {
            "event_id": range(len(hit_ids)),
            "d0": [[0.0] * len(event) for event in hit_ids],
            "hit_ids": pa.array(hit_ids, pa.list_(pa.list_(pa.uint32()))),
        }
    )


def test_tracks_are_matched_within_their_event() -> None:
    tables = {
        "particles": particles([{}], [{}, {}]),
        "tracker_hits": hits([1] * 4, [2, 1, 2, 1, 2, 1, 2]),
        # The first event has a whole track; the second one of particle 2 with half of its hits of 1, a track
        # of both with a hit of 2 more, and one of particle 1.
        "tracks": tracks([[0, 1, 2, 3]], [[0, 2, 1], [0, 1, 2, 3, 4], [1, 3]]),
    }
    block = EventBlock(tables, 2)
    assert block.match.tolist() == [0, 2, 2, 1]
    assert block.found.tolist() == [True, True, True]
    assert block.duplicate.tolist() == [False, True, False, False]


def test_track_of_three_particles_is_a_fake() -> None:
    tables = {
        "particles": particles([{}, {}, {}]),
        "tracker_hits": hits([1, 2, 3, 1]),
        "tracks": tracks([[0, 1, 2], [0, 3, 1]]),
    }
    block = EventBlock(tables, 1)
    assert block.match.tolist() == [-1, 0]
    assert block.found.tolist() == [True, False, False]


def test_denominator_is_that_of_production() -> None:
    tables = {
        "particles": particles(
            [{}, {"charge": 0.0}, {"px": 0.9}, {"vx": 25.0}, {"primary": False, "parent_id": 1}, {"pz": 60.0}]
        ),
        "tracker_hits": hits([1, 2, 3, 4, 5, 6] * 6),
    }
    assert EventBlock(tables, 1).findable.tolist() == [True, False, False, False, False, False]


def test_field_follows_from_circles() -> None:
    """Hits of a muon of 1.2 GeV on the circle that 2.5 T bends it to."""
    radius = 1000 * 1.2 / (0.299792458 * 2.5)
    angle = np.linspace(0.02, 0.4, 10)
    x, y = radius * np.sin(angle), radius * (1 - np.cos(angle))
    tables = {
        "particles": particles([{"px": 1.2}]),
        "tracker_hits": hits([1] * 10).set_column(1, "x", [[x.tolist()]]).append_column("y", [[y.tolist()]]),
    }
    chosen, field = EventBlock(tables, 1).fields
    assert chosen.tolist() == [0]
    assert field == pytest.approx([2.5], rel=1e-9)


def test_deposits_count_for_the_primary() -> None:
    tables = {
        "particles": particles([{}, {"primary": False, "parent_id": 1}, {"primary": False, "parent_id": 2}]),
        "calo_hits": pa.table(
            {
                "event_id": [0],
                "detector": pa.array([[10, 13]], pa.list_(pa.uint8())),
                "contrib_energies": [[[0.1, 0.2], [0.5]]],
                "contrib_particle_ids": pa.array([[[1, 3], [2]]], pa.list_(pa.list_(pa.uint64()))),
            }
        ),
    }
    block = EventBlock(tables, 1)
    assert block.deposited(calibrated=False) == pytest.approx([0.3, 0, 0])
    assert block.deposited(calibrated=True) == pytest.approx([0.3 * 37.5 + 0.5 * 45, 0, 0])


def test_missing_columns_are_named() -> None:
    block = EventBlock({"particles": particles([{}])}, 1)
    with pytest.raises(MissingColumn, match="no table tracks"):
        block["tracks.d0"]
    with pytest.raises(MissingColumn, match="no column time in table particles"):
        block["particles.time"]


def test_hit_far_from_its_crossing_is_a_tail() -> None:
    """Of 100 hits of the pixel barrel one is 10 mm off: its square would be all of the standard deviation."""
    z = np.tile([0.01, -0.01], 50)
    z[0] = 10.0
    columns = {axis: [np.full(100, 30.0)] for axis in ("x", "y", "true_x", "true_y")}
    columns |= {"z": [z], "true_z": [np.zeros(100)], "detector": [np.ones(100, np.uint8)]}
    variances = {"var_x": [np.full(100, 5e-5)], "var_y": [np.full(100, 5e-5)]}
    block = EventBlock({"tracker_hits": _table(columns), "measurements": _table(variances)}, 1)
    found = {}
    for name in ("hit_residual_along", "hit_chi2", "hit_tails"):
        accumulator = Accumulator(next(quantity for quantity in QUANTITIES if quantity.name == name))
        accumulator.add(block)
        found[name] = accumulator.result().value[1]
    assert found == pytest.approx({"hit_residual_along": 10.0, "hit_chi2": 1.0, "hit_tails": 0.01}, rel=0.01)


def _table(columns: dict[str, Any]) -> pa.Table:
    return pa.table({"event_id": [0], **{name: pa.array(values) for name, values in columns.items()}})
