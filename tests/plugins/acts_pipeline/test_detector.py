"""What the simulated tracker does to particles, and what is reconstructed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perf import muon_gun

from collidium.datasets.schemas import EXTENDED, SCHEMAS
from collidium.order import Variation
from collidium_plugins.acts_pipeline import collidium_baselines, tables
from collidium_plugins.acts_pipeline import events as codec
from collidium_plugins.acts_pipeline.detector import digitisation, geometry, layout, tracking
from collidium_plugins.acts_pipeline.detector.algorithms import Algorithms
from collidium_plugins.acts_pipeline.detector.gaussian_sum import mixture
from collidium_plugins.acts_pipeline.detector.geometry import Detector
from collidium_plugins.acts_pipeline.detector.reconstruction import DETECTORS, Reconstruction, majority
from collidium_plugins.acts_pipeline.detector.simulation import MIN_MOMENTUM, Simulation, is_simulated
from collidium_plugins.acts_pipeline.events import (
    ENDED,
    LEFT,
    NOT_SIMULATED,
    GeneratedEvent,
    Particles,
    ReconstructedEvent,
    SimulatedEvent,
    TrackerHits,
)
from collidium_plugins.acts_pipeline.generation.events import Generator
from collidium_plugins.acts_pipeline.order import StageError
from collidium_plugins.acts_pipeline.tables import perigee
from collidium_tasks.tracking.baselines import ckf

SEED = 11
EVENTS = 12
MASSES = {11: 0.000511, 13: 0.10566, 22: 0.0, 211: 0.13957}


@dataclass(frozen=True)
class Run:
    """The tracker, and events that it has simulated and reconstructed."""

    simulation: Simulation
    reconstruction: Reconstruction
    generated: list[GeneratedEvent]
    simulated: list[SimulatedEvent]
    reconstructed: list[ReconstructedEvent]

    def again(self, event: GeneratedEvent, seed: int = SEED) -> ReconstructedEvent:
        return self.reconstruction.reconstruct(self.simulation.simulate(event, seed), seed)


@pytest.fixture(scope="module")
def detector() -> Detector:
    return geometry.build()


@pytest.fixture(scope="module")
def ttbar(detector: Detector) -> Run:
    simulation, reconstruction = Simulation(detector), Reconstruction(detector)
    generator = Generator("ttbar", 0, SEED, None)
    generated = [generator.generate(event_id) for event_id in range(EVENTS)]
    simulated = [simulation.simulate(event, SEED) for event in generated]
    reconstructed = [reconstruction.reconstruct(event, SEED) for event in simulated]
    return Run(simulation, reconstruction, generated, simulated, reconstructed)


def gun(
    pdg_id: int,
    momentum: float,
    *,
    number: int = 300,
    charge: float = -1.0,
    etas: tuple[float, float] = (-2.0, 2.0),
) -> GeneratedEvent:
    """Particles of one kind from the origin."""
    eta = np.linspace(*etas, number)
    phi = np.linspace(0.0, 40.0, number)
    pt = momentum / np.cosh(eta)
    columns: dict[str, Any] = {
        "particle_id": np.arange(1, number + 1),
        "pdg_id": pdg_id,
        "mass": MASSES[pdg_id],
        "energy": np.hypot(momentum, MASSES[pdg_id]),
        "charge": charge,
        "px": pt * np.cos(phi),
        "py": pt * np.sin(phi),
        "pz": pt * np.sinh(eta),
        "primary": True,
        "vertex_primary": 1,
        "parent_id": -1,
    }
    names = [field.name for field in fields(Particles)]
    types = {name: SCHEMAS["particles"].field(name).type.value_type.to_pandas_dtype() for name in names}
    return GeneratedEvent(
        0, Particles(**{name: np.full(number, columns.get(name, 0), types[name]) for name in names})
    )


def gathered(run: Run, column: Callable[[ReconstructedEvent], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate([column(event) for event in run.reconstructed])


def pt(particles: Particles) -> npt.NDArray[np.float32]:
    return np.hypot(particles.px, particles.py)


def momentum(particles: Particles) -> npt.NDArray[np.float32]:
    return np.hypot(pt(particles), particles.pz)


def owner(event: ReconstructedEvent) -> npt.NDArray[np.int64]:
    """The place among the particles of each track's majority particle."""
    return event.tracks.majority_particle_id.astype(np.int64) - 1


def assert_same(one: object, other: object) -> None:
    """Bit for bit."""
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            assert left.tobytes() == right.tobytes(), field.name
        elif isinstance(left, int):
            assert left == right
        else:
            assert_same(left, right)


def test_the_geometry_has_the_modules_of_the_layout(detector: Detector) -> None:
    modules = [
        (volume.volume_id, layer.layer_id)
        for system in layout.systems()
        for volume in system.volumes
        for layer in volume.layers
        for _ in layer.modules
    ]
    ids = [detector.ids[int(module)] for module in detector.modules]
    assert sorted((one.volume, one.layer) for one in ids) == sorted(modules)
    assert {volume for volume, _ in modules} == set(DETECTORS) == set(digitisation.READOUTS)


def test_every_crossing_is_measured(ttbar: Run) -> None:
    crossings = [len(event.crossings) for event in ttbar.simulated]
    assert [len(event.hits) for event in ttbar.reconstructed] == crossings
    assert np.isfinite(gathered(ttbar, lambda event: event.hits.x)).all()


def local(detector: Detector, hits: TrackerHits, places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Coordinates in the modules' planes and across them, shape (3, hits)."""
    ids = geometry.identifier(hits.volume_id, hits.layer_id, hits.surface_id)
    module = np.searchsorted(detector.modules, ids)
    first, normal = detector.axes[module], detector.normals[module]
    offset = places - detector.centres[module]
    return np.array(
        [np.einsum("ij,ij->i", offset, axis) for axis in (first, np.cross(normal, first), normal)]
    )


def test_measurements_scatter_as_their_variances_say(ttbar: Run, detector: Detector) -> None:
    pulls: dict[int, list[npt.NDArray[np.float64]]] = {volume: [] for volume in (17, 24, 25, 29, 30)}
    for charge in (-1.0, 1.0):
        event = ttbar.again(gun(13, 10.0, charge=charge))
        hits, measured = event.hits, event.measurements
        true = local(detector, hits, np.stack([hits.true_x, hits.true_y, hits.true_z], axis=1))
        assert local(detector, hits, np.stack([hits.x, hits.y, hits.z], axis=1)) == pytest.approx(
            np.array([measured.local_x, measured.local_y, np.zeros(len(hits))]), abs=1e-3
        )
        pull = (measured.local_x - true[0]) / np.sqrt(measured.var_x)
        for volume, ours in pulls.items():
            ours.append(pull[hits.volume_id == volume])
    for volume, ours in pulls.items():
        assert np.sqrt(np.mean(np.concatenate(ours) ** 2)) == pytest.approx(1.0, abs=0.15), volume


def test_every_particle_of_hits_and_tracks_is_in_the_table(ttbar: Run) -> None:
    for generated, event in zip(ttbar.generated, ttbar.reconstructed, strict=True):
        count = len(event.particles)
        assert event.particles.particle_id.tolist() == list(range(1, count + 1))
        assert event.hits.particle_id.min() >= 1
        assert event.hits.particle_id.max() <= count
        assert np.isin(event.tracks.majority_particle_id, event.hits.particle_id).all()
        for field in fields(Particles):
            ours = getattr(event.particles, field.name)[: len(generated.particles)]
            assert ours.tobytes() == getattr(generated.particles, field.name).tobytes()


def test_hits_belong_to_particles_that_were_simulated(ttbar: Run) -> None:
    for event in ttbar.simulated:
        hit = np.unique(event.crossings.particle_id).astype(np.int64) - 1
        assert (event.particles.charge[hit] != 0).all()
        assert (event.ends.fate[hit] != NOT_SIMULATED).all()
        decayed = event.particles.parent_id[event.particles.primary & (event.particles.parent_id > 0)]
        assert (event.ends.fate[np.unique(decayed) - 1] != LEFT).all()


def test_secondaries_have_parents_and_begin_in_the_detector(ttbar: Run) -> None:
    made = 0
    for generated, event in zip(ttbar.generated, ttbar.simulated, strict=True):
        new = np.arange(len(generated.particles), len(event.particles))
        parents = event.particles.parent_id[new] - 1
        made += len(new)
        assert (parents >= 0).all()
        assert not event.particles.primary[new].any()
        electromagnetic = np.isin(np.abs(event.particles.pdg_id[parents]), (11, 22))
        # What hadrons make begins where they end.
        hadronic, of = new[~electromagnetic], parents[~electromagnetic]
        assert (np.abs(event.particles.pdg_id[of]) > 100).all()
        assert (event.ends.fate[of] == ENDED).all()
        for start, end in zip(("vx", "vy", "vz", "time"), ("x", "y", "z", "time"), strict=True):
            begun = getattr(event.particles, start)[hadronic]
            assert begun == pytest.approx(getattr(event.ends, end)[of], abs=0.01)
        new, parents = new[electromagnetic], parents[electromagnetic]
        assert set(event.particles.pdg_id[new].tolist()) <= {11, -11, 22}
        kinds = np.where(event.particles.pdg_id[new] == 22, 11, 22)
        assert (np.abs(event.particles.pdg_id[parents]) == kinds).all()
        assert (event.particles.energy[new] <= event.particles.energy[parents]).all()
        # A photon ends where its pair begins.
        pairs = np.abs(event.particles.pdg_id[new]) == 11
        assert (event.ends.fate[parents[pairs]] == ENDED).all()
        assert event.ends.x[parents[pairs]] == pytest.approx(event.particles.vx[new][pairs], abs=0.01)
    assert made > 100


def test_most_particles_are_found_and_tracks_are_true(ttbar: Run) -> None:
    wanted = found = pure = hits = 0
    for event in ttbar.reconstructed:
        particles = event.particles
        eta = np.arcsinh(particles.pz / np.maximum(pt(particles), 1e-6))
        crossed = np.bincount(event.hits.particle_id.astype(np.int64), minlength=len(particles) + 1)[1:]
        good = particles.primary & (pt(particles) > 1.0) & (np.abs(eta) < 2.5) & (crossed >= 7)
        wanted += int(good.sum())
        found += int(good[np.unique(owner(event))].sum())
        majority = np.repeat(event.tracks.majority_particle_id, event.tracks.num_hits)
        pure += int((event.hits.particle_id[event.tracks.hit_ids] == majority).sum())
        hits += len(majority)
    assert wanted > 400
    assert found / wanted > 0.95
    assert pure / hits > 0.98


def test_tracks_measure_the_particles(ttbar: Run) -> None:
    d0, z0, curvature, sign = [], [], [], []
    for event in ttbar.reconstructed:
        particles, tracks, at = event.particles, event.tracks, owner(event)
        fast = pt(particles)[at] > 1.0
        true_d0, true_z0 = perigee(particles, layout.FIELD_TESLA)
        d0.append((tracks.d0 - true_d0[at])[fast])
        z0.append((tracks.z0 - true_z0[at])[fast])
        true = particles.charge[at] / momentum(particles)[at]
        curvature.append((tracks.qop / true - 1.0)[fast])
        sign.append((np.sign(tracks.qop) == particles.charge[at])[fast])
    quantile = [np.quantile(np.abs(np.concatenate(residuals)), 0.68) for residuals in (d0, z0, curvature)]
    assert quantile[0] < 0.08  # mm
    assert quantile[1] < 0.2  # mm
    assert quantile[2] < 0.03
    assert np.mean(np.concatenate(sign)) > 0.99


def test_muons_are_found_and_measured_as_silicon_lets_them(detector: Detector) -> None:
    """Resolutions of pT are 1.3% in 2 T, and pulls wide where the fit assumes other material or variances."""
    found = muon_gun.run(detector, 400, (1.0, 10.0))
    assert found.found.mean() > 0.985
    assert 0.006 < muon_gun.width(found.pt_error[np.abs(found.eta) < 2.5]) < 0.009
    pulls = [muon_gun.width(pull) for pull in found.pulls]
    assert pulls == pytest.approx([1.0] * 5, abs=0.2)


def test_a_gaussian_sum_follows_electrons_that_radiate(ttbar: Run, detector: Detector) -> None:
    """The Kalman filter, which takes them for pions, gives half of the errors of d0 and φ."""
    electrons = gun(11, 6.0, number=400, etas=(-1.5, 1.5))
    crossed = ttbar.simulation.simulate(electrons, SEED)
    summed = Reconstruction(detector, Variation(gsf=12))
    kalman, mixed = (
        muon_gun.measured(one.reconstruct(crossed, SEED), len(electrons.particles))
        for one in (ttbar.reconstruction, summed)
    )
    assert np.array_equal(kalman.found, mixed.found)
    for pull in (0, 2):  # d0 and φ
        assert muon_gun.width(kalman.pulls[pull]) > 1.5
        assert muon_gun.width(mixed.pulls[pull]) == pytest.approx(1.0, abs=0.3)
    bias = [abs(np.nanmedian(found.pt_error)) for found in (kalman, mixed)]
    assert bias[1] < 0.7 * bias[0]


def test_a_mixture_of_losses_has_the_mean_of_bethe_and_heitler() -> None:
    for thickness in (0.005, 0.02, 0.1):
        weight, mean, variance = mixture(thickness).T
        assert weight.sum() == pytest.approx(1.0)
        assert weight @ mean == pytest.approx(np.exp(-thickness))
        assert weight @ (variance + mean**2) == pytest.approx(3 ** (-thickness / np.log(2)))
        assert (variance > 0).all()


def test_straight_tracks_of_three_space_points_are_found(ttbar: Run) -> None:
    """ACTS allows half of the true error between the slopes of a seed of long clusters: 96% without ours."""
    event = ttbar.again(gun(13, 300.0, number=400, etas=(1.8, 2.0)))
    pixels = event.hits.particle_id[np.isin(event.hits.volume_id, (16, 17, 18))]
    able = np.flatnonzero(np.bincount(pixels.astype(np.int64), minlength=401) >= 3)
    assert len(able) > 380
    assert np.isin(able, event.tracks.majority_particle_id).mean() > 0.98


def test_material_turns_photons_into_pairs(ttbar: Run) -> None:
    event = ttbar.simulation.simulate(gun(22, 10.0, number=1000, charge=0.0), SEED)
    ended = event.ends.fate[:1000] == ENDED
    radius = np.hypot(event.ends.x, event.ends.y)[:1000]
    assert 0.15 < np.mean(ended) < 0.4
    assert radius[ended].min() == pytest.approx(layout.BEAM_PIPE_RADIUS, abs=0.1)
    assert radius.max() == pytest.approx(layout.SOLENOID_INSIDE)  # which is the calorimeters' part


def test_which_particles_are_simulated() -> None:
    particles = gun(211, 5.0, number=6, charge=1.0).particles
    parent_id = np.array([-1, 1, -1, -1, -1, -1])
    pdg_id = np.array([211, 211, 12, 211, 211, 211])
    slow = np.array([1, 1, 1, 0.5 * MIN_MOMENTUM / 5.0, 1, 1], np.float32)
    pz = particles.pz * slow
    pz[4] = 5_000.0
    changed = replace(
        particles,
        parent_id=parent_id,
        pdg_id=pdg_id,
        px=particles.px * slow,
        py=particles.py * slow,
        pz=pz,
    )
    assert is_simulated(changed).tolist() == [False, True, False, False, False, True]


@pytest.mark.parametrize("pdg_id", [1_000_024, 1_000_010_020, 2**31 - 1])
def test_unknown_particles_fly_by_their_charge_and_mass(ttbar: Run, pdg_id: int) -> None:
    event = gun(13, 10.0, number=10)
    unknown = replace(event.particles, pdg_id=np.full(10, pdg_id))
    assert len(ttbar.again(replace(event, particles=unknown)).hits) > 90


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), max_size=6))
def test_of_equal_majorities_the_smallest_id_wins(tracks: list[list[int]]) -> None:
    expected = [min(Counter(track).items(), key=lambda item: (-item[1], item[0]))[0] for track in tracks]
    owners = np.array([particle for track in tracks for particle in track], np.uint64)
    assert majority(owners, np.array([len(track) for track in tracks], np.uint16)).tolist() == expected


def test_an_event_without_anything_to_see_has_empty_rows(ttbar: Run) -> None:
    nothing = ttbar.again(gun(13, 10.0, number=0))
    assert (len(nothing.hits), len(nothing.tracks)) == (0, 0)
    (row,) = codec.from_table(codec.to_table([nothing], ReconstructedEvent), ReconstructedEvent)
    assert_same(row, nothing)


def test_an_event_is_the_same_bit_for_bit_wherever_it_is_made(ttbar: Run) -> None:
    detector = geometry.build()
    elsewhere = Run(Simulation(detector), Reconstruction(detector), [], [], [])
    for event_id in (7, 2, 7):
        assert_same(elsewhere.again(ttbar.generated[event_id]), ttbar.reconstructed[event_id])


def test_other_seeds_and_other_ids_give_other_events(ttbar: Run) -> None:
    generated, simulated = ttbar.generated[3], ttbar.simulated[3]
    simulate, reconstruct = ttbar.simulation.simulate, ttbar.reconstruction.reconstruct
    others = [simulate(generated, SEED + 1), simulate(replace(generated, event_id=4), SEED)]
    assert len({event.crossings.x.tobytes() for event in [simulated, *others]}) == 3
    measured = [reconstruct(simulated, SEED + 1), reconstruct(replace(simulated, event_id=4), SEED)]
    assert len({event.hits.x.tobytes() for event in [ttbar.reconstructed[3], *measured]}) == 3


def test_events_pass_through_files_as_they_were(ttbar: Run) -> None:
    stages: list[tuple[Any, Any]] = [
        (GeneratedEvent, ttbar.generated),
        (SimulatedEvent, ttbar.simulated),
        (ReconstructedEvent, ttbar.reconstructed),
    ]
    for kind, events in stages:
        table = codec.to_table(events, kind)
        for event, row in zip(events, codec.from_table(table, kind), strict=True):
            assert_same(event, row)


def test_the_tables_are_the_hosted_ones(ttbar: Run) -> None:
    events = ttbar.reconstructed
    calo = [np.full(len(event.particles), 5, np.uint16) for event in events]
    made = {
        "particles": tables.particles(events, calo, layout.FIELD_TESLA),
        "tracker_hits": tables.tracker_hits(events),
        "tracks": tables.tracks(events),
    }
    for name, table in made.items():
        assert table.schema.equals(EXTENDED[name])
        assert list(table.schema)[: len(SCHEMAS[name])] == list(SCHEMAS[name])
        assert table.column("event_id").to_pylist() == list(range(EVENTS))
    row = {name: table.slice(5, 1).to_pylist()[0] for name, table in made.items()}
    event = events[5]
    hits = row["tracker_hits"]["particle_id"]
    assert hits == event.hits.particle_id.tolist()
    assert row["particles"]["num_tracker_hits"] == [hits.count(i + 1) for i in range(len(event.particles))]
    assert row["particles"]["num_calo_hits"] == calo[5].tolist()
    assert [len(one) for one in row["tracks"]["hit_ids"]] == event.tracks.num_hits.tolist()
    assert [hit for one in row["tracks"]["hit_ids"] for hit in one] == event.tracks.hit_ids.tolist()
    assert row["tracks"]["track_id"] == list(range(len(event.tracks)))
    assert all(len(one) == len(set(one)) for one in row["tracks"]["hit_ids"])
    assert event.tracks.hit_ids.max() < len(hits)


def test_the_kalman_filter_on_hits_finds_the_tracks_of_the_table(ttbar: Run) -> None:
    """The baseline ``ckf`` of the plugin, for events without tracks, and that of the table ``tracks``."""
    hits = tables.tracker_hits(ttbar.reconstructed)
    (baseline,) = collidium_baselines()
    found = baseline.reconstruct({"tracker_hits": hits}).column("track_id").to_numpy()
    stored = ckf({"tracker_hits": hits, "tracks": tables.tracks(ttbar.reconstructed)})
    kept = stored.column("track_id").to_numpy()
    # Hits are rounded to float32, and their errors are those of the pitch.
    assert np.mean((found >= 0) == (kept >= 0)) > 0.97
    assert len(np.unique(found)) == pytest.approx(len(np.unique(kept)), rel=0.05)
    surfaces = hits.column("surface_id").combine_chunks()
    unknown = pa.ListArray.from_arrays(surfaces.offsets, pc.add(surfaces.values, 100_000))
    elsewhere = hits.set_column(hits.column_names.index("surface_id"), "surface_id", unknown)
    with pytest.raises(ValueError, match="modules that the pipeline acts does not have"):
        baseline.reconstruct({"tracker_hits": elsewhere})


def test_a_failure_of_acts_names_the_event(detector: Detector) -> None:
    chain = Algorithms(tracking.track_finding(detector, "measured", "tracks"), inputs={}, outputs={})
    with pytest.raises(StageError, match=r"event 815: SpacePointMaker of ACTS failed: .*measured"):
        chain.run(815, 1)


def test_acts_prints_nothing(ttbar: Run, capfd: pytest.CaptureFixture[str]) -> None:
    ttbar.again(gun(211, 0.2, charge=1.0))
    assert capfd.readouterr() == ("", "")
