"""The calorimeter's model: where particles arrive, what they leave, how cells add up."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from collidium.contracts import FIELD_TESLA
from collidium.datasets.schemas import SCHEMAS
from collidium.physics import calibration
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
    """Energy of each particle as recorded in the cells, GeV."""
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    return energy_of(hits, len(particles))


def energy_of(hits: CaloHits, particles: int) -> np.ndarray:
    scale = np.repeat(calibration(hits.detector), hits.contributions)
    ids = hits.contrib_particle_ids.astype(np.int64)
    return np.bincount(ids, hits.contrib_energies * scale, minlength=particles + 1)[1:]


@pytest.mark.parametrize(("momentum", "number"), [(5, 600), (20, 300)])
def test_photons_have_response_and_resolution_of_geant4(momentum: float, number: int) -> None:
    """Open Data Detector, ci/reference/combined_performance_ECalBarrel.root: response and stochastic term."""
    particles = shot(22, momentum, eta=0.0, number=number)
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    energy = np.bincount(hits.contrib_particle_ids.astype(np.int64), hits.contrib_energies)[1:]
    assert energy.mean() / momentum == pytest.approx(0.02652, rel=0.02)
    assert energy.std() / energy.mean() == pytest.approx(0.142 / momentum**0.5, rel=0.1)


@pytest.mark.parametrize(("momentum", "residual"), [(2.5, 0.36), (25, 0.33)])
def test_hadrons_read_low(momentum: float, residual: float) -> None:
    """The mean residuals of pions in the production of the hosted datasets, without those that miss."""
    energy = measured(shot(211, momentum, number=200, charge=1))
    assert np.abs(energy / momentum - 1).mean() == pytest.approx(residual, abs=0.03)


def test_cells_hold_no_comb_of_energies() -> None:
    """The autocovariance of the spectrum, less what is smooth, in units of its statistical errors."""
    particles = shot(22, 10, number=300)
    particles.energy[:] *= np.linspace(0.5, 1.5, 300, dtype=np.float32)
    for name in ("px", "py", "pz"):
        getattr(particles, name)[:] *= np.linspace(0.5, 1.5, 300, dtype=np.float32)
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    energy = hits.total_energy[hits.detector == 10]
    counts, _ = np.histogram(energy, 200, (0.0, 8 * np.median(energy)))
    smooth = np.convolve(counts, np.ones(21) / 21, "same")
    off = ((counts - smooth) / np.sqrt(smooth + 1))[20:]
    assert max(np.mean(off[lag:] * off[:-lag]) for lag in range(4, 60)) < 0.6  # 1370 with a comb


def test_a_muon_leaves_what_a_minimum_ionising_particle_does() -> None:
    hits = deposits(muons := shot(13, 100, charge=-1), ends(muons), np.random.default_rng(1))
    for code, layers, each in ((10, 48, 0.194e-3), (13, 36, 0.601e-3)):
        energy = hits.total_energy[hits.detector == code].sum() / len(muons)
        assert energy == pytest.approx(layers * each * np.cosh(0.3), rel=0.05)


def test_material_is_that_of_the_layers() -> None:
    """At right angles: solenoid 0.45 X0 and 0.103 λ, then 26.1 and 1.27, then 81.9 and 8.85."""
    up = np.array([[0.0, 5.0, 0.0]])
    arrivals = geometry.extrapolate(np.zeros(1), up, np.zeros((1, 3)), np.zeros(1), np.full(1, 5.0))
    width = (arrivals.leaves - arrivals.enters)[0]
    regions = geometry.REGIONS
    assert width / [one.radiation for one in regions] == pytest.approx([0.45, 26.1, 0, 81.9, 0], rel=0.01)
    assert width / [one.interaction for one in regions] == pytest.approx([0.103, 1.27, 0, 8.87, 0], rel=0.01)


@pytest.mark.parametrize("eta", [0.3, 2.2])
def test_cells_stand_in_sectors_by_multiples_of_their_size(eta: float) -> None:
    particles = shot(211, 30, eta=eta)
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    layers = {10: (1252.4, 5.05, 5.1), 13: (1647.5, 51, 30), 11: (3202.4, 5.05, 5.1), 14: (3647.5, 51, 30)}
    middle = {11: (315 + 1471.2) / 2, 14: (355 + 3370.0) / 2}
    for code in set(hits.detector.tolist()):
        x, y, z = (getattr(hits, name)[hits.detector == code].astype(np.float64) for name in "xyz")
        angle = np.round(np.arctan2(y, x) * 8 / np.pi) * np.pi / 8
        height, sideways = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        plane, pitch, cell = layers[code]
        depth, along = (z, height - middle[code]) if code in middle else (height, z)
        clear = height * np.tan(np.pi / 16) - np.abs(sideways) > cell  # of the edge of its sector
        for number in ((depth - plane)[clear] / pitch, sideways[clear] / cell, along[clear] / cell):
            assert number == pytest.approx(np.round(number), abs=1e-3)


def test_cells_of_production_are_kept() -> None:
    """The time window and the thresholds that the hosted datasets have."""
    particles = shot(211, 5, number=200, charge=1)
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    ecal = hits.detector == 10
    assert hits.total_energy[ecal].min() == pytest.approx(50e-6, rel=0.05)
    assert hits.total_energy[~ecal].min() == pytest.approx(250e-6, rel=0.05)
    distance = np.sqrt(hits.x**2 + hits.y**2 + hits.z**2).repeat(hits.contributions)
    late = hits.contrib_times - (distance / 300 - 0.1)
    assert -1 <= late.min() < 1
    assert 9 < late.max() <= 10.1


@pytest.mark.parametrize(("time", "leaves"), [(0.0, True), (-1.5, False), (9.5, True), (11.0, False)])
def test_what_arrives_out_of_time_is_not_measured(time: float, leaves: bool) -> None:
    particles = shot(22, 5, number=2)
    particles.time[:] = time
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    assert (len(hits) > 0) == leaves


def test_neutrinos_leave_nothing() -> None:
    assert measured(shot(12, 100)).sum() == 0


def test_photons_stay_in_the_electromagnetic_calorimeter() -> None:
    photons = deposits(shot(22, 20), ends(shot(22, 20)), np.random.default_rng(1))
    pions = deposits(shot(211, 20), ends(shot(211, 20)), np.random.default_rng(1))
    assert set(photons.detector.tolist()) <= {10, 13}
    assert photons.total_energy[photons.detector == 10].sum() > 0.95 * photons.total_energy.sum()
    assert 0.02 < np.mean(pions.detector == 13) < 0.5


@pytest.mark.parametrize(("eta", "codes"), [(-2.0, {9, 12}), (0.0, {10, 13}), (2.0, {11, 14})])
def test_detector_codes_say_the_side(eta: float, codes: set[int]) -> None:
    particles = shot(211, 50, eta=eta)
    assert set(deposits(particles, ends(particles), np.random.default_rng(1)).detector.tolist()) == codes


def test_cells_lie_near_the_line_of_flight() -> None:
    particles = shot(22, 50, eta=0.0, number=1)
    hits = deposits(particles, ends(particles), np.random.default_rng(1))
    inner = hits.detector == 10
    centre = np.average(np.stack([hits.y, hits.z])[:, inner], axis=1, weights=hits.total_energy[inner])
    assert np.abs(centre).max() < 5


@pytest.mark.parametrize(("charge", "momentum"), [(1, 0.8), (-1, 0.8), (1, 5.0), (-1, 1000.0), (0, 3.0)])
def test_a_helix_reaches_the_face_where_small_steps_lead(charge: float, momentum: float) -> None:
    vertex, eta = np.array([3.0, -2.0, 40.0]), 0.4
    pt = momentum / np.cosh(eta)
    start = np.array([pt * np.cos(1.1), pt * np.sin(1.1), pt * np.sinh(eta)])
    ones = np.ones(1)
    there = geometry.extrapolate(charge * ones, start[None], vertex[None], 0 * ones, momentum * ones)
    place, heading, step = vertex.copy(), 1.1, 0.05
    bend = -charge * 0.299792458e-3 * FIELD_TESLA / pt
    path = 0.0
    while np.hypot(*place[:2]) < 1160:
        middle = heading + bend * step / 2
        place += step * np.array([np.cos(middle), np.sin(middle), np.sinh(eta)])
        heading += bend * step
        path += step * np.cosh(eta)
    assert there.position[0] == pytest.approx(place, abs=0.3)
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
