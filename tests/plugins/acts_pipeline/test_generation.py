"""Channels, hard scatters and what is kept of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.core.pipelines.les_houches import muon_pairs
from tests.counts import LONG

from collidium.settings import Settings
from collidium_plugins.acts_pipeline import PIPELINE
from collidium_plugins.acts_pipeline.events import Particles
from collidium_plugins.acts_pipeline.generation.channels import (
    CHANNELS,
    GUNS,
    MUON_GUN,
    REFUSED,
    SINGLE_MUON,
    Channel,
)
from collidium_plugins.acts_pipeline.generation.events import Generator
from collidium_plugins.acts_pipeline.generation.pythia import GenerationFailed, Pythia
from collidium_plugins.acts_pipeline.generation.record import heavy_flavour

#: What a channel's events have among their decayed particles, or among their final ones.
SIGNATURES = {
    "ttbar": 5,
    "ggf": None,
    "diphoton": 22,
    "jets": None,
    "zmumu": 13,
    "zee": 11,
    "higgs_portal": 36,
    "susy_gmsb": 1000039,
    "hidden_valley": 4900111,
    "zprime": 32,
}


@cache
def generator(channel: str, seed: int = 42) -> Generator:
    """Shared by all tests: what it made before must not show."""
    return Generator(channel, 0, seed, None)


def particles_of(channel: str, event_id: int = 0, seed: int = 42) -> Particles:
    return generator(channel, seed).generate(event_id).particles


def test_every_channel_is_generated_or_rejected_with_a_reason() -> None:
    known = set(Settings().channels)
    assert known | {MUON_GUN} == set(CHANNELS) | set(REFUSED)
    assert set(PIPELINE.channels or ()) == set(CHANNELS)
    assert "gg → HH" in PIPELINE.refused["dihiggs"]


@pytest.mark.parametrize("channel", [name for name in CHANNELS if name not in GUNS])
def test_a_channel_has_what_it_promises(channel: str) -> None:
    events = [particles_of(channel, event_id) for event_id in range(3)]
    for particles in events:
        final = ~decayed(particles)
        assert final.sum() > 20
        assert particles.energy[final].sum(dtype=np.float64) == pytest.approx(14_000, rel=1e-3)
        assert abs(particles.charge[final].sum() - 2) < 1e-3  # the protons'
        momentum = np.hypot(np.hypot(particles.px, particles.py, dtype=float), particles.pz)
        assert np.hypot(momentum, particles.mass) == pytest.approx(particles.energy, rel=1e-5)
    if signature := SIGNATURES[channel]:
        kinds = np.concatenate([np.abs(particles.pdg_id) for particles in events])
        if signature == 5:
            assert any(heavy_flavour(kind) == 5 for kind in kinds.tolist())
        else:
            assert signature in kinds


def decayed(particles: Particles) -> np.ndarray:
    return np.isin(particles.particle_id, particles.parent_id[particles.parent_id > 0].astype(np.uint64))


def test_parents_are_earlier_particles_of_the_same_vertex() -> None:
    particles = particles_of("ttbar")
    child = np.flatnonzero(particles.parent_id > 0)
    parent = particles.parent_id[child] - 1
    assert (parent < child).all()
    assert set(np.unique(particles.particle_id)) == set(range(1, len(particles) + 1))
    assert (particles.parent_id[particles.parent_id <= 0] == -1).all()
    flavours = {heavy_flavour(int(particles.pdg_id[place])) for place in parent}
    assert 5 in flavours  # a top decays to a b


def test_what_a_k_short_decays_to_is_not_primary() -> None:
    particles = particles_of("jets", event_id=1)
    of_kshort = np.isin(particles.parent_id, particles.particle_id[particles.pdg_id == 310].astype(np.int64))
    assert of_kshort.any()
    assert not particles.primary[of_kshort].any()
    assert particles.primary[particles.parent_id == -1].all()


def test_long_lived_particles_decay_far_from_the_beams() -> None:
    particles = particles_of("susy_gmsb")
    gravitino = particles.pdg_id == 1000039
    assert gravitino.sum() == 2
    assert np.hypot(particles.vx, particles.vy)[gravitino].min() > 0.1
    assert np.all(particles.time[gravitino] > particles.time[0])


@pytest.mark.parametrize(
    ("channel", "kind", "mass"), [("higgs_portal", 36, 55), ("susy_gmsb", 1000022, 204.23)]
)
def test_long_lived_particles_are_those_of_production(channel: str, kind: int, mass: float) -> None:
    """Masses and proper lifetimes of ColliderML-Production (configs_production)."""
    proper = []
    for particles in (particles_of(channel, event_id) for event_id in range(12)):
        points = np.stack([particles.vx, particles.vy, particles.vz])
        for place in np.flatnonzero(particles.pdg_id == kind):
            daughter = np.argmax(particles.parent_id == particles.particle_id[place])
            momentum = np.hypot(np.hypot(particles.px, particles.py), particles.pz)[place]
            assert particles.mass[place] == pytest.approx(mass, abs=0.5)
            proper.append(np.linalg.norm(points[:, daughter] - points[:, place]) * mass / momentum)
    assert 60 < np.mean(proper) < 170  # of an exponential, 100 mm


def test_dark_mesons_and_the_z_prime_are_those_of_production() -> None:
    events = [particles_of("hidden_valley", event_id) for event_id in range(3)]
    masses = np.concatenate([event.mass[np.abs(event.pdg_id) == 4900111] for event in events])
    assert masses == pytest.approx(10)
    events = [particles_of("zprime", event_id) for event_id in range(12)]
    assert np.median([event.mass[event.pdg_id == 32][0] for event in events]) == pytest.approx(3000, rel=0.1)
    for event in events:
        boson = event.particle_id[event.pdg_id == 32][0]
        assert set(np.abs(event.pdg_id[event.parent_id == boson]).tolist()) <= {11, 13, 22}


@pytest.mark.parametrize("channel", [name for name in CHANNELS if name not in GUNS])
def test_a_cross_section_is_pythias(channel: str) -> None:
    made = CHANNELS[channel]
    hard = replace(made, settings=(*made.settings, "PartonLevel:all = off", "HadronLevel:all = off"))
    pythia = Pythia(hard)
    for _ in range(1500):
        pythia._pythia.next()
    assert pythia._pythia.infoPython().sigmaGen() * 1e9 == pytest.approx(made.picobarns, rel=0.08)


def test_diphotons_have_the_cuts_of_production() -> None:
    made = CHANNELS["diphoton"]
    pythia = Pythia(replace(made, settings=(*made.settings, "PartonLevel:all = off")))
    for _ in range(100):
        pythia._pythia.next()
        final = [entry for entry in pythia._pythia.process if entry.isFinal() and entry.id() == 22]
        assert all(entry.pT() > 20 and abs(entry.eta()) < 2.5 for entry in final)


def test_a_z_has_its_mass() -> None:
    particles = particles_of("zmumu")
    muons = particles.parent_id == particles.particle_id[particles.pdg_id == 23].astype(np.int64)
    muons &= np.abs(particles.pdg_id) == 13
    total = [getattr(particles, name)[muons].sum(dtype=float) for name in ("energy", "px", "py", "pz")]
    assert muons.sum() == 2
    assert 30 < np.sqrt(total[0] ** 2 - sum(part**2 for part in total[1:])) < 150


@pytest.mark.parametrize(("channel", "muons", "max_pt"), [(SINGLE_MUON, 1, 100), (MUON_GUN, 2, 10)])
def test_guns_shoot_muons_of_either_charge(channel: str, muons: int, max_pt: float) -> None:
    shots = [particles_of(channel, event_id) for event_id in range(200)]
    assert {len(shot) for shot in shots} == {muons}
    fired = Particles.concatenate(shots)
    pt = np.hypot(fired.px, fired.py)
    eta = np.arcsinh(fired.pz / pt)
    assert 1 <= pt.min() < 0.1 * max_pt + 1 < 0.9 * max_pt < pt.max() <= max_pt
    assert eta.min() < -2 < 2 < eta.max()
    assert set(zip(fired.charge.tolist(), fired.pdg_id.tolist(), strict=True)) == {(1.0, -13), (-1.0, 13)}


@pytest.mark.parametrize("channel", CHANNELS if LONG else ("ttbar", "hidden_valley", SINGLE_MUON))
def test_nothing_leaks_from_one_event_into_another(channel: str) -> None:
    """Seeded anew, Pythia makes the same event whatever it made before: bit for bit."""
    there = [particles_of(channel, event_id) for event_id in range(12)]
    other = Generator(channel, 0, 42, None)
    for event_id in (7, 3, 11, 0):
        again = other.generate(event_id).particles
        for name in type(again).__slots__:
            assert getattr(again, name).tobytes() == getattr(there[event_id], name).tobytes()


def test_events_of_other_seeds_and_ids_differ() -> None:
    same, event = particles_of("zee"), particles_of("zee", event_id=1)
    for other in (43, 42 + 2**127):
        assert not np.array_equal(same.px[:5], particles_of("zee", seed=other).px[:5])
    assert np.array_equal(same.px, particles_of("zee").px)
    assert not np.array_equal(same.px[:5], event.px[:5])


@pytest.mark.parametrize(
    ("pdg", "flavour"),
    [
        *((511, 5), (-521, 5), (5122, 5), (541, 5), (553, 5), (421, 4), (-4122, 4), (443, 4)),
        *((211, 0), (310, 0), (3122, 0), (5, 0), (5503, 0), (4103, 0), (1000022, 0), (4900111, 0), (22, 0)),
    ],
)
def test_flavour_of_hadrons(pdg: int, flavour: int) -> None:
    assert heavy_flavour(pdg) == flavour


def test_hard_processes_of_a_file_are_taken_by_event_id(tmp_path: Path) -> None:
    """In any order, and again; the shower moves muons of 50 + k GeV a little."""
    file = tmp_path / "with blanks" / "input.lhe"
    file.parent.mkdir()
    file.write_text(muon_pairs(8))
    reader, other = (Generator("dihiggs", 0, 42, None, file) for _ in range(2))
    made = {event_id: reader.generate(event_id).particles for event_id in (0, 1, 5, 7, 2)}
    for event_id, particles in made.items():
        muons = np.flatnonzero(np.abs(particles.pdg_id) == 13)[:2]
        squared = [particles_sum(particles, muons, name) ** 2 for name in ("energy", "px", "py", "pz")]
        mass = np.sqrt(squared[0] - sum(squared[1:]))
        assert mass == pytest.approx(100 + 2 * event_id, rel=0.2)
        assert other.generate(event_id).particles.px.tobytes() == particles.px.tobytes()


def particles_sum(particles: Particles, chosen: np.ndarray, name: str) -> float:
    return float(getattr(particles, name)[chosen].sum(dtype=float))


def test_settings_that_pythia_does_not_know_are_refused() -> None:
    with pytest.raises(GenerationFailed, match="Top:gg2ttbarr"):
        Pythia(Channel("nothing", ("Top:gg2ttbarr = on",)))
