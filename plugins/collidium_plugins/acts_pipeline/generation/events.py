"""Generates events: a hard scatter and pileup collisions, each at its vertex."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline import seeds
from collidium_plugins.acts_pipeline.events import GeneratedEvent, Particles
from collidium_plugins.acts_pipeline.generation import pileup
from collidium_plugins.acts_pipeline.generation.channels import CHANNELS, GUNS, les_houches
from collidium_plugins.acts_pipeline.generation.pileup import Pileup, PileupPool, Vertices
from collidium_plugins.acts_pipeline.generation.pythia import Pythia
from collidium_plugins.acts_pipeline.generation.record import TYPES, Interaction, keep_all


class Generator:
    """Generates events for a channel, pileup and seed.

    An event depends only on these and on its id. Its hard scatter does not depend on the pileup, so the same
    event can be compared with and without pileup.
    """

    def __init__(
        self, channel: str, pileup: int, seed: int, pool: PileupPool | None, lhe: Path | None = None
    ) -> None:
        """Raise GenerationFailed if Pythia rejects the channel's settings or the Les Houches file."""
        self._channel, self._pileup, self._seed, self._pool = channel, pileup, seed, pool
        self._pythia = None
        if lhe is not None:
            self._pythia = Pythia(les_houches(lhe))
        elif channel not in GUNS:
            self._pythia = Pythia(CHANNELS[channel])

    def generate(self, event_id: int) -> GeneratedEvent:
        """Return an event. Raises GenerationFailed."""
        hard = self._hard_scatter(event_id)
        random = seeds.generator("place", self._channel, self._seed, event_id)
        counts = np.array([len(hard)])
        parts = [_shifted(hard, pileup.vertices(random, 1), counts)]
        if self._pool is not None:
            drawn = pileup.draw(self._channel, self._pileup, self._seed, event_id)
            soft, soft_counts = self._pool.take(drawn.members)
            parts.append(_shifted(_rotated(soft, drawn, soft_counts), drawn.vertices, soft_counts))
            counts = np.concatenate([counts, soft_counts])
        return GeneratedEvent(event_id, _particles(Interaction.concatenate(parts), counts))

    def _hard_scatter(self, event_id: int) -> Interaction:
        identity = (self._channel, self._seed, event_id)
        if self._pythia is None:
            return muons(seeds.generator("hard scatter", *identity), *GUNS[self._channel])
        return self._pythia.generate(seeds.for_pythia("hard scatter", *identity), keep_all, event_id)


def _rotated(soft: Interaction, drawn: Pileup, counts: npt.NDArray[np.int64]) -> Interaction:
    """Rotate collisions by 180° around the x axis where ``drawn.flipped``, then around the beams."""
    sign = np.repeat(np.where(drawn.flipped, -1.0, 1.0), counts)
    cosine, sine = np.repeat(np.cos(drawn.angle), counts), np.repeat(np.sin(drawn.angle), counts)

    def transverse(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
        y_flipped = sign * y
        both = (cosine * x - sine * y_flipped, sine * x + cosine * y_flipped)
        return [values.astype(np.float32) for values in both]

    px, py = transverse(soft.px, soft.py)
    vx, vy = transverse(soft.vx, soft.vy)
    sign_z = sign.astype(np.float32)
    return replace(soft, px=px, py=py, pz=sign_z * soft.pz, vx=vx, vy=vy, vz=sign_z * soft.vz)


def _shifted(interactions: Interaction, to: Vertices, counts: npt.NDArray[np.int64]) -> Interaction:
    """Shift interactions, of ``counts`` particles each, to their vertices."""

    def shifted(relative: npt.NDArray[np.float32], offset: pileup.Floats) -> npt.NDArray[np.float32]:
        return (relative + np.repeat(offset, counts)).astype(np.float32)

    return replace(
        interactions,
        vx=shifted(interactions.vx, to.x),
        vy=shifted(interactions.vy, to.y),
        vz=shifted(interactions.vz, to.z),
        time=shifted(interactions.time, to.time),
    )


def _particles(joined: Interaction, counts: npt.NDArray[np.int64]) -> Particles:
    """Number particles and vertices from 1; the first interaction, vertex 1, is the hard scatter."""
    first = np.repeat(np.cumsum(counts) - counts, counts)
    same = {name: getattr(joined, name) for name in TYPES if name != "parent"}
    return Particles(
        **same,
        particle_id=np.arange(1, len(joined) + 1, dtype=np.uint64),
        vertex_primary=np.repeat(np.arange(1, len(counts) + 1, dtype=np.uint16), counts),
        parent_id=np.where(joined.parent < 0, -1, joined.parent + first + 1).astype(np.int64),
    )


#: GeV. Source: Particle Data Group.
_MUON_MASS: Final = 0.1056583755
_MIN_PT: Final = 1.0
_ETA: Final = (-3.0, 3.0)


def muons(random: np.random.Generator, number: int, max_pt: float) -> Interaction:
    """Return muons of random charge at the origin, uniform in pT (1 GeV to ``max_pt``), η (-3 to 3) and φ."""
    rows: list[tuple[Any, ...]] = []
    for _ in range(number):
        charge = random.choice((-1, 1))
        pt, eta, phi = random.uniform(_MIN_PT, max_pt), random.uniform(*_ETA), random.uniform(-np.pi, np.pi)
        momentum = (pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta))
        energy = np.hypot(pt * np.cosh(eta), _MUON_MASS)
        rows.append((-13 * charge, charge, _MUON_MASS, *momentum, energy, 0.0, 0.0, 0.0, 0.0, True, -1))
    return Interaction.from_rows(rows)
