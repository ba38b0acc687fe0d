"""Physics helpers against values by hand, `vector`, and the built-in pipeline's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from collidium import physics
from collidium.demo import EVENTS_DIRECTORY
from collidium.physics import Helix, Ragged, constants, plots
from collidium.physics.ragged import joined

NUMBERS = arrays(np.float64, 6, elements=st.floats(-100, 100).filter(lambda value: abs(value) > 1e-3))


def ragged(lists: list[list[Any]], kind: Any = np.float64) -> Ragged:
    values = np.array([value for one in lists for value in one], kind)
    return Ragged(values, np.cumsum([0, *map(len, lists)]))


# -- kinematics -----------------------------------------------------------------------------------------


@given(NUMBERS, NUMBERS, NUMBERS)
def test_momenta_are_those_of_vector(px: Any, py: Any, pz: Any) -> None:
    import vector

    same = vector.array({"px": px, "py": py, "pz": pz})
    flat = {"px": px, "py": py, "pz": pz}
    lists = {name: Ragged(column, np.array([0, 2, 2, 6])) for name, column in flat.items()}
    for name in ("pt", "eta", "phi"):
        own = getattr(physics, name)
        np.testing.assert_allclose(own(flat), getattr(same, name), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(own(lists).values, own(flat))
        assert own(lists).offsets.tolist() == [0, 2, 2, 6]
    turned = same[::-1]
    backwards = {name: column[::-1] for name, column in flat.items()}
    np.testing.assert_allclose(physics.delta_r(flat, backwards), same.deltaR(turned), atol=1e-9)


def test_tables_of_awkward_and_frames_stay_what_they_are() -> None:
    import awkward
    import pandas

    lists = awkward.Array([[{"px": 3.0, "py": 4.0, "pz": 0.0}], []])
    assert physics.pt(lists).tolist() == [[5.0], []]
    assert physics.eta(lists).tolist() == [[0.0], []]
    frame = pandas.DataFrame({"theta": [np.pi / 2], "qop": [-0.5], "phi": [1.0]})
    assert physics.pt(frame).tolist() == [2.0]
    assert physics.phi(frame).tolist() == [1.0]


def test_directions_along_the_beams_are_finite() -> None:
    """As of the vector library: 0 without momentum, far out without a transverse one."""
    table = {"px": np.zeros(3, np.float32), "py": np.zeros(3, np.float32), "pz": np.float32([0, 5, -5])}
    zero, forward, backward = physics.eta(table).tolist()
    assert zero == 0
    assert forward == -backward > 60


def test_tracks_have_the_direction_of_their_angles() -> None:
    tracks = {"theta": ragged([[0.5], [2.0]]), "qop": ragged([[0.1], [-2.0]]), "phi": ragged([[0.0], [1.0]])}
    np.testing.assert_allclose(physics.eta(tracks).values, -np.log(np.tan(np.array([0.25, 1.0]))))
    np.testing.assert_allclose(physics.pt(tracks).values, [np.sin(0.5) / 0.1, np.sin(2.0) / 2.0])


def test_positions_are_seen_from_the_centre() -> None:
    hits = {"x": np.array([30.0]), "y": np.array([40.0]), "z": np.array([50.0])}
    assert physics.r(hits).tolist() == [50.0]
    assert physics.eta(hits).tolist() == pytest.approx([np.arcsinh(1.0)])
    assert physics.r({"vx": np.array([3.0]), "vy": np.array([4.0])}).tolist() == [5.0]


@given(st.data())
def test_tracks_go_to_the_nearest_jet_of_their_event(data: st.DataObject) -> None:
    """Against all pairs one by one; with empty events, and azimuths across the seam."""
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=4))
    angle = st.floats(-3, 3)

    def table(place: int) -> dict[str, Ragged]:
        return {
            name: ragged([data.draw(st.lists(angle, min_size=of[place], max_size=of[place])) for of in sizes])
            for name in ("eta", "phi")
        }

    tracks, jets = table(0), table(1)
    found = physics.nearest_jet(tracks, jets, radius=1.0)
    for event in range(len(sizes)):
        for track, place in enumerate(found[event]):
            distances = np.hypot(
                tracks["eta"][event][track] - jets["eta"][event],
                np.angle(np.exp(1j * (tracks["phi"][event][track] - jets["phi"][event]))),
            )
            if place < 0:
                assert (distances >= 1.0 - 1e-9).all()
            else:
                assert distances[place] == pytest.approx(distances.min(), abs=1e-9)
                assert distances[place] < 1.0 + 1e-9


# -- helices --------------------------------------------------------------------------------------------


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from([-1.0, 0.0, 1.0]))
def test_helices_pass_their_perigee_at_right_angles(x: Any, y: Any, p: Any, charge: float) -> None:
    """It is nearest to the beams there, and the track that it makes is the same line."""
    particles = {
        "px": p,
        "py": p[::-1],
        "pz": x,
        "vx": x / 10,
        "vy": y / 10,
        "vz": y,
        "charge": np.full(6, charge),
    }
    helix = Helix.from_particles(particles)
    d0, z0, phi = helix.perigee()
    at = np.stack([-d0 * np.sin(phi), d0 * np.cos(phi), z0], axis=1)
    tracks = Helix(*at.T, phi, helix.curvature, helix.cot_theta)
    np.testing.assert_allclose(tracks.perigee()[0], d0, atol=1e-6)
    vertex = np.stack([helix.x, helix.y, helix.z], axis=1)
    arcs = np.linspace(-200, 200, 4001)
    nearest = np.linalg.norm(tracks.points(arcs) - vertex[:, None], axis=2).min(axis=1)
    assert (nearest < 0.06 * np.hypot(1, helix.cot_theta)).all()
    around = np.hypot(*tracks.points(arcs)[..., :2].transpose(2, 0, 1))
    assert (around >= np.abs(d0)[:, None] - 1e-6).all()


def test_a_helix_has_the_radius_of_its_momentum() -> None:
    """pT = 0.2998 B R: the field of 3 T bends 0.9 GeV on a circle of about one metre."""
    tracks = {"d0": 0.0, "z0": 5.0, "phi": 0.0, "theta": np.pi / 2, "qop": -1 / 0.9}
    half = np.pi * 0.9 / (constants.BENDING * 3.0)
    (start, far), *_ = Helix.from_tracks({k: np.array([v]) for k, v in tracks.items()}).points([0.0, half])
    np.testing.assert_allclose(start, [0, 0, 5], atol=1e-9)
    np.testing.assert_allclose(far, [0, 2 * half / np.pi, 5], atol=1e-6)  # to the left: negative in field +z


def test_helices_of_real_tracks_pass_near_their_hits() -> None:
    """Hosted events, which this code has not made: hits lie along their track."""
    rows = {name: pq.read_table(EVENTS_DIRECTORY / f"{name}.parquet") for name in ("tracks", "tracker_hits")}
    tracks, hits = (physics.columns(rows[name]) for name in ("tracks", "tracker_hits"))
    helix = Helix.from_tracks(tracks)
    points = helix.points(np.linspace(0, 1100, 1101))
    ids: Ragged = tracks["hit_ids"]
    of_events = Ragged(ids.values.values, ids.values.offsets[ids.offsets])
    hit = physics.Finder(hits["hit_id"]).rows(of_events)
    at = np.stack([hits[name].values[hit] for name in "xyz"], axis=1)
    distance = np.linalg.norm(points[ids.values.event] - at[:, None], axis=2).min(axis=1)
    assert np.median(distance) < 2.0


# -- truth ----------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 9), unique=True, max_size=6), max_size=5), st.data())
def test_rows_are_found_by_event_and_id(known: list[list[int]], data: st.DataObject) -> None:
    wanted = [data.draw(st.lists(st.integers(-1, 9), max_size=5)) for _ in known]
    big = 2**62  # beyond the integers of float64
    ids = ragged([[big + one for one in of] for of in known], np.uint64)
    rows = physics.Finder(ids).rows(
        ragged([[big + one if one >= 0 else -1 for one in of] for of in wanted], np.int64)
    )
    flat = [(event, one) for event, of in enumerate(known) for one in of]
    asked = [(event, one) for event, of in enumerate(wanted) for one in of]
    assert rows.tolist() == [flat.index(one) if one in flat else -1 for one in asked]


def test_secondaries_come_from_their_primary() -> None:
    """A chain of three, a secondary without a known parent, and a circle, which ends."""
    primary = np.array([True, False, False, True, False, False, False])
    parent = np.array([-1, 0, 1, 0, -1, 6, 5])
    assert physics.primary_ancestor(primary, parent)[:5].tolist() == [0, 0, 0, 3, 4]


def test_less_pileup_keeps_whole_collisions_and_noise() -> None:
    vertices = [[1, 1, 2, 3, 3, 4], [1, 2], [1]]
    particles = {
        "particle_id": ragged([[1, 2, 3, 4, 5, 6], [1, 2], [9]], np.uint64),
        "vertex_primary": ragged(vertices, np.uint16),
    }
    hits = {"particle_id": ragged([[6, 5, 4, 0, 1], [2, 2], [0]], np.uint64)}
    kept = physics.subsample_pileup(
        {"particles": particles, "tracker_hits": hits}, 2, np.random.default_rng(1)
    )
    numbers = [of.tolist() for of in kept["particles"]["vertex_primary"]]
    assert len(set(numbers[0])) == 3
    assert [number for number in vertices[0] if number in numbers[0]] == numbers[0]
    assert numbers[1:] == vertices[1:]
    left = [of.tolist() for of in kept["particles"]["particle_id"]]
    for event, before in enumerate([[6, 5, 4, 0, 1], [2, 2], [0]]):
        assert kept["tracker_hits"]["particle_id"][event].tolist() == [
            one for one in before if one in [*left[event], 0]
        ]
    with pytest.raises(ValueError, match="tracks"):
        physics.subsample_pileup({"particles": particles, "tracks": {}}, 1, np.random.default_rng())


def test_chosen_lists_of_lists_keep_their_elements() -> None:
    nested = Ragged(ragged([[1], [2, 3], []]), np.array([0, 2, 3]))
    chosen = nested.where(np.array([False, True, True]))
    assert [[one.tolist() for one in of] for of in chosen] == [[[2, 3]], [[]]]


# -- detector -------------------------------------------------------------------------------------------


def test_cells_are_calibrated_by_their_calorimeter() -> None:
    cells = {"detector": ragged([[9, 10], [14]], np.uint8), "total_energy": ragged([[1.0, 2.0], [0.5]])}
    assert physics.calibrated_energy(cells).values.tolist() == [38.7, 75.0, 23.45]


def test_modules_are_those_of_acts() -> None:
    import acts

    made = acts.GeometryIdentifier(volume=17, layer=4, sensitive=1234).value
    hits = {"volume_id": np.array([17]), "layer_id": np.array([4]), "surface_id": np.array([1234])}
    assert physics.module_id(hits).tolist() == [made]


# -- plots ----------------------------------------------------------------------------------------------


def test_plots_are_matplotlib_axes() -> None:
    rows = {name: pq.read_table(EVENTS_DIRECTORY / f"{name}.parquet") for name in ("tracks", "tracker_hits")}
    one = {
        name: {column: of[0] for column, of in physics.columns(table.drop(["event_id"])).items()}
        for name, table in rows.items()
    }
    for view in ("xy", "zr"):
        axes = plots.event(one["tracker_hits"], one["tracks"], view=view)
        assert len(axes.lines) == 1 + len(one["tracks"]["d0"])
    random = np.random.default_rng(2)
    values, found = random.uniform(0, 10, 500), random.random(500) < 0.8
    axes = plots.efficiency(values, found, np.linspace(0, 12, 7), xlabel="pT (GeV)")
    points = axes.lines[0].get_xydata()
    assert len(points) == 5, "bins without particles have no point"
    assert axes.get_xlabel() == "pT (GeV)"
    signal = random.random(500) < 0.5
    curve = plots.roc(random.normal(size=500) + 2 * signal, signal, label="mine").lines[0].get_xydata()
    assert (np.diff(curve[:, 0]) >= 0).all()
    assert curve[-1].tolist() == [1.0, 1.0]
    plots.spectra({"all": values, "found": values[found]}, np.linspace(0, 10, 11), axes=axes)
    assert len(axes.patches) == 2


def test_intervals_of_fractions_are_those_of_wilson() -> None:
    """0 of 10 and 5 of 10 at one standard deviation: (1 / 11) and 0.5 -+ half of 1 / sqrt(11)."""
    low, high = plots.wilson([0, 5], [10, 10])
    np.testing.assert_allclose(low, [0, 0.5 - 0.5 / np.sqrt(11)], atol=1e-12)
    np.testing.assert_allclose(high, [1 / 11, 0.5 + 0.5 / np.sqrt(11)])


@pytest.mark.parametrize(
    ("known", "wanted", "expected"),
    [
        (np.array([1, 2], np.int32), np.array([2**32 + 1, 2], np.int64), [-1, 1]),
        (np.array([2**64 - 1], np.uint64), np.array([-1], np.int64), [-1]),
        (np.array([-1, 7], np.int64), np.array([2**64 - 1, 7], np.uint64), [-1, 1]),
        (np.array([2**60 + 1, 2**60 + 2], np.uint64), np.array([2**60 + 2, 3], np.int64), [1, -1]),
    ],
)
def test_a_finder_never_wraps_ids(known: Any, wanted: Any, expected: list[int]) -> None:
    ids, others = (physics.Ragged(values, np.array([0, len(values)])) for values in (known, wanted))
    assert physics.Finder(ids).rows(others).tolist() == expected


def test_joined_integers_remain_integers() -> None:
    large, small = np.array([2**60 + 1], np.uint64), np.array([-3], np.int64)
    both = joined([large, small])
    assert (both.dtype, both.tolist()) == (np.int64, [2**60 + 1, -3])
    both = joined([np.array([2**63], np.uint64), np.array([3], np.int64)])
    assert (both.dtype, both.tolist()) == (np.uint64, [2**63, 3])
    assert joined([np.array(["a"], object), np.array(["b"], object)]).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="fit into no integers of 64 bits"):
        joined([np.array([2**63], np.uint64), small])
