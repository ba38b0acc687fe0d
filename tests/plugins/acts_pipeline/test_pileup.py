"""Pileup: how many, where, from which pool, and turned how."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
import pythia8mc

from collidium_plugins.acts_pipeline import PYTHIA, files
from collidium_plugins.acts_pipeline.generation import pileup
from collidium_plugins.acts_pipeline.generation.channels import ENERGY, MINIMUM_BIAS
from collidium_plugins.acts_pipeline.generation.events import Generator
from collidium_plugins.acts_pipeline.generation.pileup import PileupPool, collisions
from collidium_plugins.acts_pipeline.generation.pythia import Pythia, multiparton

EVENTS = range(4)
PILEUP = 6


@pytest.fixture(scope="module")
def pythia() -> Pythia:
    return Pythia(MINIMUM_BIAS)


@pytest.fixture(scope="module")
def pool(pythia: Pythia, tmp_path_factory: pytest.TempPathFactory) -> PileupPool:
    directory: Path = tmp_path_factory.mktemp("pool")
    needed = pileup.members("single_muon", PILEUP, 42, EVENTS)
    for part, numbers in enumerate(np.array_split(needed, 2)):
        table = collisions(pythia, 42, numbers.tolist())
        files.write(directory / f"{part}.arrow", table, compress=False)
    return PileupPool(sorted(directory.glob("*.arrow")))


def test_numbers_places_and_times_are_spread_as_documented() -> None:
    drawn = [pileup.draw("ttbar", 200, 42, event) for event in range(300)]
    numbers = np.array([len(one.members) for one in drawn])
    assert numbers.mean() == pytest.approx(200, abs=3)
    assert numbers.std() == pytest.approx(200**0.5, rel=0.15)
    for name, spread in (("x", 0.0125), ("y", 0.0125), ("z", 55.5), ("time", 0.185)):
        values = np.concatenate([getattr(one.vertices, name) for one in drawn])
        assert values.std() == pytest.approx(spread, rel=0.02)
        assert abs(values.mean()) < 0.02 * spread
    members = np.concatenate([one.members for one in drawn])
    assert 0 <= members.min() < 10
    assert pileup.POOL - 10 < members.max() < pileup.POOL


def test_an_event_has_its_collisions_each_at_its_vertex(pool: PileupPool) -> None:
    generator = Generator("single_muon", PILEUP, 42, pool)
    for event_id in EVENTS:
        particles = generator.generate(event_id).particles
        drawn = pileup.draw("single_muon", PILEUP, 42, event_id)
        _, counts = pool.take(drawn.members)
        assert len(particles) == 1 + counts.sum()
        for vertex, count in enumerate(counts.tolist(), 2):
            chosen = particles.vertex_primary == vertex
            assert chosen.sum() == count
            near = np.abs(particles.vz[chosen] - drawn.vertices.z[vertex - 2]) < 1e-3
            assert near.any() or not count
        child = np.flatnonzero(particles.parent_id > 0)
        parent = particles.parent_id[child] - 1
        assert (particles.vertex_primary[child] == particles.vertex_primary[parent]).all()
        assert not np.isin(np.abs(particles.pdg_id[1:]), (12, 14, 16)).any()


def test_a_turned_collision_is_the_same_collision(pool: PileupPool) -> None:
    """Turning keeps lengths and angles between particles, and the way from vertex to vertex."""
    generator = Generator("single_muon", PILEUP, 42, pool)
    drawn = pileup.draw("single_muon", PILEUP, 42, 1)
    soft, counts = pool.take(drawn.members)
    after = generator.generate(1).particles
    assert drawn.flipped.any()
    assert not drawn.flipped.all()
    for name, axes in (("momentum", ("px", "py", "pz")), ("place", ("vx", "vy", "vz"))):
        was = np.stack([getattr(soft, axis) for axis in axes], axis=1).astype(float)
        now = np.stack([getattr(after, axis)[1:] for axis in axes], axis=1).astype(float)
        for place, (end, count) in enumerate(zip(np.cumsum(counts), counts, strict=True)):
            first = end - count
            if not count:  # elastic
                continue
            if name == "place":
                vertex = [getattr(drawn.vertices, axis)[place] for axis in "xyz"]
                now[first:end] -= vertex
            tolerance = 1e-4 if name == "momentum" else 1e-2
            assert now[first:end] @ now[first:end].T == pytest.approx(
                was[first:end] @ was[first:end].T, rel=1e-4, abs=tolerance * max(1, np.abs(was).max())
            )
            sign = -1 if drawn.flipped[place] else 1
            assert now[first:end, 2] == pytest.approx(sign * was[first:end, 2], rel=1e-4, abs=1e-3)


def test_the_hard_scatter_is_the_same_at_every_pileup(pool: PileupPool) -> None:
    alone = Generator("single_muon", 0, 42, None).generate(2).particles
    within = Generator("single_muon", PILEUP, 42, pool).generate(2).particles
    for name in type(alone).__slots__:
        assert getattr(within, name)[0] == getattr(alone, name)[0]


def test_a_collision_depends_on_its_number_alone(pythia: Pythia) -> None:
    together = collisions(pythia, 42, [5, 17, 12_000])
    alone = collisions(pythia, 42, [17])
    assert together.slice(1, 1).equals(alone)
    assert not collisions(pythia, 43, [17]).equals(alone)


def test_an_event_without_pileup_drawn_has_its_hard_scatter(pythia: Pythia, tmp_path: Path) -> None:
    files.write(tmp_path / "none.arrow", collisions(pythia, 42, []), compress=False)
    soft, counts = PileupPool([tmp_path / "none.arrow"]).take(np.array([], np.int64))
    assert len(soft) == 0
    assert len(counts) == 0


def test_a_fifth_of_the_collisions_is_elastic(pythia: Pythia) -> None:
    """``SoftQCD:all`` as in production: the detector sees nothing of 23%."""
    made = collisions(pythia, 42, range(300))
    empty = np.mean(np.array(pc.list_value_length(made.column("pdg_id"))) == 0)
    assert 0.18 < empty < 0.33


def test_multiparton_interactions_are_those_of_the_tune() -> None:
    """A new version, energy or tune needs a new file: without one of its version Pythia takes six seconds."""
    file = MINIMUM_BIAS.multiparton
    assert file is not None
    settings = pythia8mc.Pythia("", False).settings
    installed = settings.parm("Pythia:versionNumber")
    assert PYTHIA.startswith(f"{installed:.3f}.")
    assert multiparton(MINIMUM_BIAS, installed) == file
    assert multiparton(MINIMUM_BIAS, installed + 0.001) is None
    assert (settings.mode("Tune:pp"), settings.word("PDF:pSet")) == (14, "13")
    reference, scale, power = (
        settings.parm(f"MultipartonInteractions:{name}") for name in ("pT0Ref", "ecmRef", "ecmPow")
    )
    beams, found = (line.split() for line in file.read_text().splitlines()[1:3])
    assert [float(value.strip(",")) for value in beams[3:5]] == [ENERGY, ENERGY]
    assert float(found[0]) == pytest.approx(reference * (ENERGY / scale) ** power, abs=1e-5)


@pytest.mark.long
def test_multiparton_interactions_are_those_pythia_finds(tmp_path: Path) -> None:
    made = tmp_path / "made.mpi"
    writes = (f"MultipartonInteractions:initFile = {made}", "MultipartonInteractions:reuseInit = 1")
    Pythia(replace(MINIMUM_BIAS, settings=(*MINIMUM_BIAS.settings, *writes), multiparton=None))
    assert MINIMUM_BIAS.multiparton is not None
    assert made.read_text() == MINIMUM_BIAS.multiparton.read_text()
