"""Baselines see what is measured alone, and separate b jets by tracks that miss the collision."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from math import asinh, atan2, cos, hypot, pi, sin, sinh
from runpy import run_path

import numpy as np
import pyarrow as pa
import pytest

from collidium_tasks.jets.baselines.features import NAMES, features, jets_of

from .events import FLAVOURS, TASK, tables

BASELINES = sorted(TASK.baselines())


def of(jets: Sequence[tuple[float, float, float]], tracks: Sequence[dict[str, float]]) -> dict[str, pa.Table]:
    """An event with jets (pt, eta, phi) and tracks with the given parameters, others as for a prompt one."""
    columns = {name: [[jet[place] for jet in jets]] for place, name in enumerate(("pt", "eta", "phi"))}
    made = {"d0": 0.0, "z0": 0.0, "phi": 0.0, "theta": pi / 2, "qop": 0.5}
    return {
        "jets": pa.table(
            {"event_id": [1], "jet_id": [[*range(len(jets))]], "mass": [[5.0] * len(jets)], **columns}
        ),
        "tracks": pa.table(
            {
                "event_id": [1],
                **{name: [[track.get(name, value) for track in tracks]] for name, value in made.items()},
            }
        ),
    }


def test_tracks_belong_to_the_nearest_jet() -> None:
    (first, second) = jets_of(of([(50, 0, 0), (40, 0, 0.6)], [{"phi": 0.1}, {"phi": 0.35}, {"phi": -0.5}]))
    assert first.phi.tolist() == [0.1]
    assert second.phi.tolist() == [0.35]
    assert second.distance.tolist() == pytest.approx([0.25])


def test_jets_are_seen_from_the_vertex() -> None:
    """A jet that leaves the vertex, 100 mm from the centre, at right angles is seen there at η above 0."""
    (jet,) = jets_of(of([(50, asinh(100 / 1350), 0)], [{"z0": 100.0}]))
    assert jet.jet_eta == pytest.approx(0, abs=1e-9)
    assert jet.z0.tolist() == [0.0]


@pytest.mark.parametrize("side", [1, -1])
def test_a_displaced_decay_has_a_positive_impact_parameter(side: int) -> None:
    """It leaves the jet's axis 5 mm from the vertex, on either side; one from behind has a negative one."""
    angle = side * 0.2
    d0 = -5 * sin(angle)  # times the direction to the left of its flight: (-sin φ, cos φ)
    (jet,) = jets_of(of([(50, 0, 0)], [{"phi": angle, "d0": d0}, {"phi": angle, "d0": -d0}]))
    assert jet.d0[0] == -jet.d0[1] > 5
    assert jet.abs_d0.tolist() == pytest.approx([abs(d0)] * 2)
    closest = (-d0 * sin(angle), d0 * cos(angle))
    assert atan2(closest[1], closest[0]) == pytest.approx(angle - side * pi / 2)
    assert hypot(5 - closest[0], closest[1]) < 5.2, "nearer to the jet than to what is behind"


def test_soft_and_far_tracks_do_not_count() -> None:
    (jet,) = jets_of(of([(50, 0, 0)], [{"qop": 2.1}, {"d0": 3.1}, {"phi": 0.45}, {"qop": -1.9}]))
    assert jet.pt.tolist() == pytest.approx([1 / 1.9])


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_sees_no_truth(name: str) -> None:
    made = tables()
    hidden = made | {"jets": made["jets"].drop_columns(["flavour"])}
    reconstruct = TASK.baselines()[name]
    assert reconstruct(hidden).equals(reconstruct(made))


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_answers_events_without_jets_or_tracks(name: str) -> None:
    made = tables()
    reconstruct = TASK.baselines()[name]
    nothing = reconstruct(of([], [{}]))
    assert (nothing.num_rows, nothing.column_names) == (0, list(TASK.card.column_names))
    alone = reconstruct(of([(50, 0, 0)], []))
    assert alone.num_rows == 1
    pieces = [reconstruct({n: table.slice(event, 1) for n, table in made.items()}) for event in range(5)]
    assert pa.concat_tables(pieces).equals(reconstruct(made).combine_chunks())


@pytest.mark.parametrize("name", BASELINES)
def test_displaced_tracks_make_a_b_jet(name: str) -> None:
    displaced = [
        {"phi": 0.2, "d0": -0.6},
        {"phi": -0.15, "d0": 0.5},
        {"phi": 0.1, "d0": -0.3},
        {"phi": -0.1, "d0": 0.3},
    ]
    prompt = [{"phi": 2 + angle, "d0": 0.01} for angle in (-0.2, -0.1, 0.0, 0.1, 0.2)]
    made = TASK.baselines()[name](of([(60, 0, 0), (60, 0, 2)], displaced + prompt))
    first, second = made.column("prob_b").to_pylist()
    assert first > 0.5 > second


def test_features_are_finite_whatever_the_tracks() -> None:
    odd = [{"theta": 0.0}, {"theta": pi}, {"qop": 0.0}, {"d0": 1e9}, {"z0": -1e9}, {"phi": 100.0}]
    made = features(of([(20, 2.5, -pi), (1e4, sinh(1), pi)], odd))
    assert made.shape == (2, len(NAMES))
    assert np.isfinite(made).all()
    assert features(tables(FLAVOURS)).shape[0] == sum(map(len, FLAVOURS))


def test_the_model_to_begin_with_says_what_it_lacks() -> None:
    file = resources.files("collidium_tasks.jets") / "start" / "jets" / "model.py.template"
    model = run_path(str(file))
    with pytest.raises(SystemExit, match="name training events"):
        model["predict"](None, {})
