"""The calorimeter's model: where particles arrive, what they leave, how cells add up."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from collidium.contracts import FIELD_TESLA
from collidium.datasets.schemas import ECAL_CODE, SAMPLING, SCHEMAS
from collidium_plugins.acts_pipeline.calorimeter import CaloHits, deposits, geometry
from collidium_plugins.acts_pipeline.calorimeter.cells import cells_of_particles, to_table
from collidium_plugins.acts_pipeline.events import ENDED, LEFT, NOT_SIMULATED, Ends, Particles


def shot(pdg_id: int, momentum: float, *, eta: float = 0.3, number: int = 50, charge: float = 0) -> Particles:
    """Particles of one kind from the origin, evenly in φ."""
    mass = {11: 0.000511, 13: 0.10566, 22: 0.0, 211: 0.13957, 2112: 0.93957, 12: 0.0}[abs(pdg_id)]
    phi = np.linspace(-np.pi, np.pi, number, endpoint=False)
    pt = momentum / np.cosh(eta)
    columns: dict[str, object] = {
        "particle_id": np.arange(1, number + 1),
        "pdg_id": np.full(number, pdg_id),
        "mass": np.full(number, mass),
        "energy": np.full(number, np.hypot(momentum, mass)),
        "charge": np.full(number, charge),
        "px": pt * np.cos(phi),
        "py": pt * np.sin(phi),
        "pz": np.full(number, pt * np.sinh(eta)),
        "parent_id": np.full(number, -1),
        "vertex_primary": np.ones(number),
        "primary": np.ones(number),
    }
    types = {field.name: SCHEMAS["particles"].field(field.name).type for field in fields(Particles)}

    def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
        return pa.array([], kind).to_numpy(zero_copy_only=False).dtype  # pyarrow 20 asks pandas for the rest

    return Particles(
        **{
            name: np.asarray(columns.get(name, np.zeros(number)), numpy_type(kind.value_type))
            for name, kind in types.items()
        }
    )


def ends(particles: Particles, fate: int = NOT_SIMULATED) -> Ends:
    zero = np.zeros(len(particles), np.float32)
    return Ends(np.full(len(particles), fate, np.uint8), *[zero] * 8)


def measured(particles: Particles) -> np.ndarray:
    """Energy of each particle that the cells tell, GeV."""
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    return energy_of(hits, len(particles))


def energy_of(hits: CaloHits, particles: int) -> np.ndarray:
    scale = np.repeat(np.array(SAMPLING)[hits.detector - ECAL_CODE], hits.contributions)
    ids = hits.contrib_particle_ids.astype(np.int64)
    return np.bincount(ids, hits.contrib_energies * scale, minlength=particles + 1)[1:]


@pytest.mark.parametrize(
    ("pdg_id", "charge", "resolution"),
    [(22, 0, 0.17), (11, -1, 0.17), (211, 1, 0.60), (2112, 0, 0.60)],
)
@pytest.mark.parametrize("eta", [0.0, 0.7, -2.0, 2.5])
def test_energy_is_measured_with_the_resolution(
    pdg_id: int, charge: float, resolution: float, eta: float
) -> None:
    particles = shot(pdg_id, 20, eta=eta, number=400, charge=charge)
    visible = 20 if pdg_id != 2112 else particles.energy[0] - particles.mass[0]
    energy = measured(particles)
    assert energy.mean() == pytest.approx(visible, rel=0.05)
    assert energy.std() / visible == pytest.approx(resolution / 20**0.5, rel=0.5)


def test_a_muon_leaves_what_a_minimum_ionising_particle_does() -> None:
    assert measured(shot(13, 100, charge=-1)).mean() == pytest.approx(1.75, rel=0.3)


def test_neutrinos_leave_nothing() -> None:
    assert measured(shot(12, 100)).sum() == 0


def test_photons_stay_in_the_electromagnetic_calorimeter() -> None:
    photons = deposits(shot(22, 20), ends(shot(22, 20)), np.random.default_rng(1))
    pions = deposits(shot(211, 20), ends(shot(211, 20)), np.random.default_rng(1))
    assert set(photons.detector.tolist()) <= {10, 13}
    assert photons.total_energy[photons.detector == 10].sum() > 0.95 * photons.total_energy.sum()
    assert 0.2 < np.mean(pions.detector == 13) < 0.9


@pytest.mark.parametrize(("eta", "codes"), [(-2.0, {9, 12}), (0.0, {10, 13}), (2.0, {11, 14})])
def test_detector_codes_say_the_side(eta: float, codes: set[int]) -> None:
    particles = shot(211, 50, eta=eta)
    assert set(deposits(particles, ends(particles), np.random.default_rng(1)).detector.tolist()) == codes


def test_cells_lie_near_the_line_of_flight() -> None:
    particles = shot(22, 50, eta=0.0, number=1)
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    inner = hits.detector == 10
    radius = np.hypot(hits.x, hits.y)[inner]
    assert radius.min() >= 1250
    assert radius.max() <= 1500
    centre = np.average(np.stack([hits.y, hits.z])[:, inner], axis=1, weights=hits.total_energy[inner])
    assert np.abs(centre).max() < 5


@pytest.mark.parametrize(("charge", "momentum"), [(1, 0.8), (-1, 0.8), (1, 5.0), (-1, 1000.0), (0, 3.0)])
def test_a_helix_reaches_the_face_where_small_steps_lead(charge: float, momentum: float) -> None:
    vertex, eta = np.array([3.0, -2.0, 40.0]), 0.4
    pt = momentum / np.cosh(eta)
    start = np.array([pt * np.cos(1.1), pt * np.sin(1.1), pt * np.sinh(eta)])
    ones = np.ones(1)
    there = geometry.fly(charge * ones, start[None], vertex[None], 0 * ones, momentum * ones)
    place, heading, step = vertex.copy(), 1.1, 0.05
    bend = -charge * 0.299792458e-3 * FIELD_TESLA / pt
    path = 0.0
    while np.hypot(*place[:2]) < 1250:
        middle = heading + bend * step / 2
        place += step * np.array([np.cos(middle), np.sin(middle), np.sinh(eta)])
        heading += bend * step
        path += step * np.cosh(eta)
    assert there.place[0] == pytest.approx(place, abs=0.3)
    assert there.direction[0, :2] == pytest.approx(
        np.array([np.cos(heading), np.sin(heading)]) / np.cosh(eta), abs=1e-3
    )
    assert there.time[0] == pytest.approx(path / 299.792458, abs=1e-2)


def test_what_curls_up_or_flies_down_the_beam_pipe_is_lost() -> None:
    assert measured(shot(211, 0.2, eta=0.0, charge=1)).sum() == 0
    assert measured(shot(22, 100, eta=4.0)).sum() == 0


def test_a_particle_flies_on_from_where_it_left_the_tracker() -> None:
    particles = shot(22, 20, number=1)
    values = {"fate": [LEFT], "x": [0], "y": [1000], "z": [0], "time": [9]}
    values |= {"px": [0], "py": [5], "pz": [0], "energy": [5]}
    left = Ends(**{k: np.array(v, np.uint8 if k == "fate" else np.float32) for k, v in values.items()})
    hits = deposits(particles, left, np.random.default_rng(1))
    assert energy_of(hits, 1)[0] == pytest.approx(5, rel=0.4)
    assert hits.y.min() > 1200
    assert hits.contrib_times.min() == pytest.approx(9 + 250 / 299.79, rel=0.1)


def test_what_ended_in_the_tracker_or_decayed_leaves_nothing() -> None:
    particles = shot(22, 20, number=3)
    particles.parent_id[:] = [-1, 1, -1]
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    assert set(hits.contrib_particle_ids.tolist()) == {2, 3}
    assert len(deposits(particles, ends(particles, ENDED), np.random.default_rng(1))) == 0


def test_contributions_add_up_to_cells_and_particle_counts() -> None:
    particles = shot(211, 30, number=40)
    particles.px[:], particles.py[:] = particles.px[0], particles.py[0]  # all into the same cells
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    table = to_table([7, 8], [hits, hits])
    assert table.schema == SCHEMAS["calo_hits"]
    row = table.slice(1).to_pylist()[0]
    assert max(map(len, row["contrib_energies"])) > 1
    for energy, parts, ids in zip(
        row["total_energy"], row["contrib_energies"], row["contrib_particle_ids"], strict=True
    ):
        assert sum(parts) == pytest.approx(energy, rel=1e-5)
        assert len(set(ids)) == len(ids) == len(parts)
    counts = cells_of_particles(table, 1, 40)
    flat = [one for ids in row["contrib_particle_ids"] for one in ids]
    assert counts.tolist() == [flat.count(number) for number in range(1, 41)]


def test_an_empty_event_has_no_cells() -> None:
    particles = shot(22, 20, number=0)
    table = to_table([0], [deposits(particles, ends(particles), np.random.default_rng(1))])
    assert table.column("x").to_pylist() == [[]]
    assert to_table([], []).num_rows == 0
