"""Systematic variations: each does what it promises, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from tests.plugins.acts_pipeline.test_detector import SEED, gun

from collidium.order import VARIATIONS, Variation
from collidium_plugins.acts_pipeline import PIPELINE
from collidium_plugins.acts_pipeline.detector import geometry
from collidium_plugins.acts_pipeline.detector.geometry import Detector
from collidium_plugins.acts_pipeline.detector.reconstruction import Reconstruction, merged
from collidium_plugins.acts_pipeline.detector.simulation import Simulation
from collidium_plugins.acts_pipeline.detector.variation import HitVariation, varied_detector
from collidium_plugins.acts_pipeline.events import ReconstructedEvent, SimulatedEvent, SimulatedHits


@pytest.fixture(scope="module")
def detector() -> Detector:
    return geometry.build()


@pytest.fixture(scope="module")
def muons(detector: Detector) -> SimulatedEvent:
    return Simulation(detector).simulate(gun(13, 20.0, number=100), SEED)


@pytest.fixture(scope="module")
def hits(detector: Detector) -> SimulatedHits:
    """One in the middle of each module."""
    volume, layer, surface = geometry.parts(detector.modules)
    x, y, z = detector.centres.T
    time, owner = np.zeros(len(x), np.float32), np.ones(len(x), np.uint64)
    dx, dy, dz = detector.normals.T.astype(np.float32)
    return SimulatedHits(x, y, z, dx, dy, dz, time, owner, volume, layer, surface)


def test_the_pipeline_varies_what_can_be_varied() -> None:
    assert set(PIPELINE.variations) <= set(VARIATIONS)


def test_without_a_variation_hits_stay_as_they_are(detector: Detector, hits: SimulatedHits) -> None:
    measured, seen = HitVariation(detector, Variation(field=0.9)).apply(hits, SEED, 0)
    assert measured is hits
    assert np.array_equal(seen.T, [hits.x, hits.y, hits.z])


def test_hits_are_lost_at_random(detector: Detector, hits: SimulatedHits) -> None:
    varied = HitVariation(detector, Variation(inefficiency=0.1))
    left, _ = varied.apply(hits, SEED, 0)
    assert len(left) == pytest.approx(0.9 * len(hits), abs=200)  # 41 is one standard deviation
    assert not np.array_equal(left.x[:50], varied.apply(hits, SEED, 1)[0].x[:50])
    assert np.array_equal(left.x, varied.apply(hits, SEED, 0)[0].x)


def test_noise_is_spread_over_the_channels(detector: Detector, hits: SimulatedHits) -> None:
    noisy, _ = HitVariation(detector, Variation(noise=1e-6)).apply(hits, SEED, 0)
    noise = noisy.particle_id == 0
    pixels = np.isin(noisy.volume_id, (16, 17, 18))
    assert noise.sum() == pytest.approx(2982, abs=220)  # four standard deviations
    assert (noise & pixels).sum() == pytest.approx(1786, abs=170)
    identifiers = geometry.identifier(noisy.volume_id, noisy.layer_id, noisy.surface_id)
    assert (np.diff(identifiers.astype(np.int64)) >= 0).all()
    module = np.searchsorted(detector.modules, identifiers[noise])
    offset = np.stack([noisy.x, noisy.y, noisy.z], axis=1)[noise] - detector.centres[module]
    assert np.abs(np.einsum("ij,ij->i", offset, detector.normals[module])).max() < 1e-9
    assert 30 < np.linalg.norm(offset, axis=1).max() < 110


def test_modules_stay_where_they_are_in_all_events(detector: Detector, hits: SimulatedHits) -> None:
    varied = HitVariation(detector, Variation(misalign=10))
    measured, seen = varied.apply(hits, SEED, 0)
    offsets = seen - np.stack([hits.x, hits.y, hits.z], axis=1)
    assert measured is hits
    assert np.sqrt((offsets**2).sum(axis=1).mean()) == pytest.approx(0.010 * 2**0.5, rel=0.02)
    assert np.array_equal(seen, varied.apply(hits, SEED, 1)[1])
    assert not np.array_equal(seen, varied.apply(hits, SEED + 1, 0)[1])


def residuals(event: ReconstructedEvent) -> float:
    """Root mean square of pixel hits across the beams, µm."""
    pixels = (event.hits.volume_id == 17) & (event.hits.particle_id > 0)
    away = np.hypot(event.hits.x - event.hits.true_x, event.hits.y - event.hits.true_y)[pixels]
    return float(np.sqrt((away.astype(float) ** 2).mean()) * 1000)


def test_varied_events_are_reconstructed(detector: Detector, muons: SimulatedEvent) -> None:
    nominal = Reconstruction(detector).reconstruct(muons, SEED)
    smeared = Reconstruction(detector, Variation(smear=3)).reconstruct(muons, SEED)
    assert residuals(smeared) / residuals(nominal) == pytest.approx(3, rel=0.35)
    noisy = Reconstruction(detector, Variation(noise=1e-7, inefficiency=0.1)).reconstruct(muons, SEED)
    owned = noisy.hits.particle_id > 0
    assert 200 < (~owned).sum() < 400
    assert owned.sum() / len(nominal.hits) == pytest.approx(0.9, abs=0.05)
    assert len(noisy.tracks) > 80


def test_clusters_that_touch_become_one_hit(detector: Detector) -> None:
    """Two muons side by side: one hit for both, of the first of them, which is in tracks and measurements."""
    pair = gun(13, 20.0, number=2, etas=(0.5, 0.5))
    for momentum in (pair.particles.px, pair.particles.py):
        momentum[1] = momentum[0]
    crossed = Simulation(detector).simulate(pair, SEED)
    apart, merged = (
        Reconstruction(detector, variation).reconstruct(crossed, SEED)
        for variation in (Variation(), Variation(merge=1))
    )
    assert len(merged.hits) < len(apart.hits) == len(crossed.crossings)
    assert len(merged.measurements.size_x) == len(merged.hits)
    innermost = merged.hits.volume_id == 17
    assert innermost.sum() == 4 < (apart.hits.volume_id == 17).sum()
    away = np.abs(merged.hits.z - merged.hits.true_z)[innermost]
    assert away.max() < 0.05  # mm: sizes, positions and particles are of the same hit
    assert len(merged.tracks) == 1 < len(apart.tracks)
    own = merged.hits.particle_id[merged.tracks.hit_ids]
    assert len(np.unique(merged.tracks.hit_ids)) == merged.tracks.num_hits[0]
    assert (own == merged.tracks.majority_particle_id[0]).mean() >= 0.5


def test_merged_crossings_are_the_first_of_a_measurement() -> None:
    """The last measurement is of the crossing that the first one has already."""
    kept, order, place = merged([(0, 2), (1, 1), (1, 0), (2, 4), (3, 2)])
    assert kept.tolist() == [0, 2, 4]
    assert order.tolist() == [1, 0, 2]
    assert place.tolist() == [1, 0, 2, 1]
    assert [len(one) for one in merged([])] == [0, 0, 0]


def test_field_and_material_are_those_that_particles_cross(detector: Detector, muons: SimulatedEvent) -> None:
    """Simulated in half of the field, reconstructed in all of it: twice the momentum."""
    other = Simulation(varied_detector(Variation(field=0.5, material=3)))
    half, photons = other.simulate(gun(13, 20.0, number=100), SEED), gun(22, 10.0, charge=0.0)
    electrons = []
    for made in (other.simulate(photons, SEED), Simulation(detector).simulate(photons, SEED)):
        radius = np.hypot(made.particles.vx, made.particles.vy)[len(photons.particles) :]
        electrons.append((radius < 1000).sum())  # within the solenoid
    assert electrons[0] > 1.5 * electrons[1] > 30
    reconstruction = Reconstruction(detector)
    curvature = [
        np.median(np.abs(reconstruction.reconstruct(event, SEED).tracks.qop)) for event in (half, muons)
    ]
    assert curvature[0] / curvature[1] == pytest.approx(0.5, rel=0.05)
