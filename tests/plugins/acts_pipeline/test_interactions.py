"""Hadronic interactions and decays in flight: how often, where, and what comes of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from collidium_plugins.acts_pipeline.detector import interactions, material
from collidium_plugins.acts_pipeline.detector.hadrons import ReactionPool
from collidium_plugins.acts_pipeline.detector.interactions import Sheet, TrackerMaterial
from collidium_plugins.acts_pipeline.events import LEFT, Ends, Particles, SimulatedHits

NUMBER = 20_000
MASSES = {2212: 0.938, 211: 0.13957, 13: 0.10566, 22: 0.0}
#: Five cylinders of 0.3 interaction lengths in all, and a disc and a cylinder that nothing reaches.
SLAB = np.array([[0.06, 0.2]])
FIVE = [Sheet(True, 100.0 * one, -3000.0, 3000.0, np.empty(0), SLAB) for one in range(1, 6)]
FAR = [Sheet(kind, 9000.0, 0.0, 1.0, np.empty(0), np.ones((1, 2))) for kind in (True, False)]


@pytest.fixture(scope="module")
def pool() -> ReactionPool:
    return ReactionPool()


def flying(pdg_id: int, momentum: float) -> Particles:
    """Particles from the origin along the x axis."""
    values: dict[str, Any] = {field.name: np.zeros(NUMBER, np.float32) for field in fields(Particles)}
    values["pdg_id"] = np.full(NUMBER, pdg_id)
    values["mass"] += MASSES[pdg_id]
    values["energy"] += np.hypot(momentum, MASSES[pdg_id])
    values["px"] += momentum
    values["charge"] += pdg_id in (211, 2212)
    values["particle_id"] = np.arange(1, NUMBER + 1, dtype=np.uint64)
    return Particles(**values)


def secondary_vertices(
    pdg_id: int, momentum: float, tracker: TrackerMaterial, generated: int = NUMBER
) -> interactions.SecondaryVertices:
    """What happens to them until a radius of 1000 mm."""
    ends = Ends.none(NUMBER)
    ends.fate[:], ends.x[:] = LEFT, 1000.0
    ends.time[:] = 1000.0 / 299.792458 * np.hypot(1.0, MASSES[pdg_id] / momentum)
    hits: dict[str, Any] = {field.name: np.empty(0) for field in fields(SimulatedHits)}
    return interactions.secondary_vertices(
        flying(pdg_id, momentum),
        ends,
        SimulatedHits(**hits),
        generated,
        tracker,
        np.random.default_rng(1),
    )


@pytest.mark.parametrize(("pdg_id", "strength"), [(2212, 1.0), (211, 342 / 436)])
def test_hadrons_survive_as_interaction_lengths_say(pdg_id: int, strength: float) -> None:
    """Of all, exp(-x/λ) pass the material up to each radius; pions see less of it."""
    found = secondary_vertices(pdg_id, 1000.0, TrackerMaterial([*FIVE, *FAR]))
    radius = found.position[0][~found.decays]
    for sheet in range(1, 6):
        passed = 1 - (radius < 100 * sheet + 50).sum() / NUMBER
        assert passed == pytest.approx(np.exp(-0.06 * sheet * strength), abs=0.008)
    assert radius == pytest.approx(100 * np.round(radius / 100))


@pytest.mark.parametrize(("momentum", "lost"), [(0.1, 0.30), (1.0, 0.07), (50.0, 0.0)])
def test_photons_convert_from_the_first_material_on(momentum: float, lost: float) -> None:
    """Seven ninths of a radiation length, and less at low energies; Tsai's table for aluminium."""
    found = secondary_vertices(22, momentum, TrackerMaterial([*FIVE, *FAR]))
    radius = found.position[0]
    for sheet in range(1, 6):
        passed = 1 - (radius < 100 * sheet + 50).sum() / NUMBER
        assert passed == pytest.approx(np.exp(-0.2 * sheet * 7 / 9 * (1 - lost)), abs=0.012)


def test_pairs_share_the_energy_of_their_photon(pool: ReactionPool) -> None:
    found = secondary_vertices(22, 0.5, TrackerMaterial([*FIVE, *FAR]))
    photons = flying(22, 0.5)
    made = interactions.products(photons, found, 3.0, pool, np.random.default_rng(1))
    assert set(zip(made.pdg_id.tolist(), made.charge.tolist(), strict=True)) == {(11, -1.0), (-11, 1.0)}
    assert made.parent_id.tolist() == np.tile(photons.particle_id[found.index], 2).tolist()
    energy = made.energy.reshape(2, -1)
    assert energy.sum(axis=0) == pytest.approx(0.5, rel=2e-3)
    assert (energy[0] / 0.5).std() == pytest.approx((13 / 140) ** 0.5, rel=0.05)  # of 1 - 4/3 x (1 - x)
    assert np.median(np.abs(made.py) / made.px) < 5 * 0.000511 / 0.25


def test_slant_incidence_meets_more_material() -> None:
    begin, end = np.zeros((3, 1)), np.array([[150.0], [0.0], [150.0]])
    disc = Sheet(False, 100.0, 0.0, 200.0, np.array([50.0]), np.array([[0.5, 1.0], [0.1, 0.3]]))
    segment, part, lengths = TrackerMaterial([FIVE[0], disc]).crossings(begin, end)
    assert segment.tolist() == [0, 0]
    assert part == pytest.approx([2 / 3, 2 / 3])
    assert sorted(lengths[:, 0]) == pytest.approx([0.06 * 2**0.5, 0.1 * 2**0.5])
    assert sorted(lengths[:, 1]) == pytest.approx([0.2 * 2**0.5, 0.3 * 2**0.5])


def test_muons_and_slow_hadrons_do_not_interact() -> None:
    assert len(secondary_vertices(13, 10.0, TrackerMaterial([*FIVE, *FAR])).index) == 0
    assert not (~secondary_vertices(2212, 0.1, TrackerMaterial([*FIVE, *FAR])).decays).any()


def test_pions_decay_with_their_lifetime() -> None:
    found = secondary_vertices(211, 0.5, TrackerMaterial(FAR))
    flight = 0.5 / MASSES[211] * 7804.5
    assert found.decays.all()
    assert len(found.index) / NUMBER == pytest.approx(1 - np.exp(-1000.0 / flight), rel=0.08)
    assert 0 < found.position[0].min() < found.position[0].max() <= 1000


@pytest.mark.parametrize(
    ("eta", "lengths"), [(0.07, 0.081), (0.6, 0.098), (1.0, 0.147), (1.67, 0.198), (2.6, 0.194), (3.0, 0.260)]
)
def test_interaction_lengths_are_those_of_geant4(eta: float, lengths: float) -> None:
    """Tracker and beam pipe of the Open Data Detector, ci/reference/material_composition.root."""
    slope = np.sinh(eta)
    end = np.array([[0.0], [1.0], [slope]]) * min(1170.0, 3090.0 / slope)
    tracker = TrackerMaterial(interactions.sheets(material.slabs()))
    assert tracker.crossings(0 * end, end)[2][:, 0].sum() == pytest.approx(lengths, rel=0.1)


@pytest.mark.parametrize(
    ("pdg_id", "mass"), [(211, 0.13957), (-321, 0.49368), (310, 0.49761), (3122, 1.11568)]
)
def test_decays_conserve_momentum(pool: ReactionPool, pdg_id: int, mass: float) -> None:
    made = pool.products(pdg_id, 2.3, mass, True, np.random.default_rng(1))
    assert len(made) >= 2
    assert made[:, 1:4].sum(axis=0) == pytest.approx([0.0, 0.0, 2.3], abs=1e-3)
    assert made[:, 4].sum() == pytest.approx(np.hypot(2.3, mass), rel=1e-3)


@pytest.mark.parametrize(
    ("pdg_id", "mass", "momentum"), [(211, 0.13957, 8.0), (2212, 0.938, 30.0), (-3312, 1.3217, 3.0)]
)
def test_collisions_go_forward_with_the_energy(
    pool: ReactionPool, pdg_id: int, mass: float, momentum: float
) -> None:
    random = np.random.default_rng(1)
    made = [pool.products(pdg_id, momentum, mass, False, random) for _ in range(100)]
    together = np.array([one[:, 1:4].sum(axis=0) for one in made]).mean(axis=0)
    assert together == pytest.approx([0.0, 0.0, momentum], rel=0.1, abs=0.1 * momentum)
    assert np.mean([len(one) for one in made]) > 3
    for one in made:
        assert one[:, 4] == pytest.approx(np.sqrt((one[:, 1:4] ** 2).sum(axis=1) + one[:, 5] ** 2), rel=1e-3)


def test_slow_hadrons_free_nucleons(pool: ReactionPool) -> None:
    random = np.random.default_rng(1)
    made = [pool.products(-211, 0.3, 0.13957, False, random) for _ in range(300)]
    pions = np.mean([(one[:, 0] == -211).any() for one in made])
    assert pions == pytest.approx(0.5, abs=0.1)
    for one in made:
        assert set(one[:, 0].astype(int).tolist()) <= {-211, 2212, 2112}
        kinetic = (one[:, 4] - one[:, 5]).sum()
        assert kinetic <= np.hypot(0.3, 0.13957)
