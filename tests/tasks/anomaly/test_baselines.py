"""The baselines see what is measured, and nothing of other events."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from collidium.physics import calibration
from collidium_tasks.anomaly import AnomalyTask
from collidium_tasks.anomaly.baselines import NAMES, features, reference

from .events import TASK, tables


def test_features_by_hand() -> None:
    """Two deposits of 3 and 4 GeV at right angles, a track of 50 GeV that begins 5 mm off the beams.

    Of the calorimeters' towers one is on the track and one is not: there the energy has no track.
    """
    ids = pa.array([7, 8], pa.uint32())

    def lists(*values: float) -> pa.Array:
        return pa.array([values, []], pa.list_(pa.float32()))

    made = features(
        {
            "tracker_hits": pa.table({"event_id": ids, "x": lists(1, 2, 3)}),
            "calo_hits": pa.table(
                {
                    "event_id": ids,
                    "detector": pa.array([[9, 12], []], pa.list_(pa.uint8())),
                    "x": lists(10, 0),
                    "y": lists(0, 10),
                    "z": lists(0, 0),
                    "total_energy": lists(3, 4),
                }
            ),
            "tracks": pa.table(
                {
                    "event_id": ids,
                    "d0": lists(-5),
                    "phi": lists(0.1),
                    "theta": lists(np.pi / 2),
                    "qop": lists(-0.02),
                }
            ),
        }
    )
    values = dict(zip(NAMES, np.expm1(made[0]).tolist(), strict=True))
    assert values == pytest.approx(
        {
            "hits": 3,
            "tracks": 1,
            "track_pt": 50,
            "hardest_track_pt": 50,
            "displaced_tracks": 1,
            "largest_d0": 5,
            "energy": 7,
            "hardest_deposit": 4,
            "transverse_energy": 7,
            "missing_transverse_energy": 5,
            "trackless_transverse_energy": 4 * calibration(12),
            "hard_towers": 2,
        },
        rel=1e-6,
    )
    assert made[1].tolist() == [0.0] * len(NAMES)


def test_a_straight_track_is_no_infinite_momentum() -> None:
    made = tables()
    flat = made["tracks"].set_column(
        4,
        "qop",
        pa.array([[0.0] * len(lists) for lists in made["tracks"]["d0"].to_pylist()], pa.list_(pa.float32())),
    )
    assert np.isfinite(features(made | {"tracks": flat})).all()


def test_the_forest_was_grown_from_plausible_events() -> None:
    assert reference().shape == (400, len(NAMES))
    assert np.isfinite(reference()).all()
    assert (reference().std(axis=0) > 0).all()


@pytest.mark.parametrize("name", list(TASK.baselines()))
def test_a_score_depends_on_no_other_event(name: str) -> None:
    """Else it would depend on how events are cut into blocks."""
    made = {table: made for table, made in tables().items() if table in TASK.card.inputs}
    reconstruct = TASK.baselines()[name]
    together = reconstruct(made)
    alone = [reconstruct({table: rows.slice(n, 1) for table, rows in made.items()}) for n in range(6)]
    assert together.equals(pa.concat_tables(alone).combine_chunks())
    assert together.column_names == list(TASK.card.column_names)


def test_without_scikit_learn_there_is_no_forest() -> None:
    with patch("collidium_tasks.common.can_learn", return_value=False):
        assert TASK.missing_baselines() == {"forest": "collidium[baselines]"}
    with patch("collidium_tasks.anomaly.can_learn", return_value=False):
        assert list(AnomalyTask().baselines()) == ["energy", "mixture", "weak"]
