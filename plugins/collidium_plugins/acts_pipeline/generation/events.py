"""Events: a hard scatter and its pileup, each at its vertex, as one list of particles."""

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
from collidium_plugins.acts_pipeline.generation.pileup import Pileup, Places, Pool
from collidium_plugins.acts_pipeline.generation.pythia import Pythia
from collidium_plugins.acts_pipeline.generation.record import TYPES, Interaction, everything


class Generator:
    """Generates the events of one channel, pileup and seed.

    An event depends on these and on its id alone. Its hard scatter does not depend on the pileup: the same
    event with and without pileup can be compared.
    """

    def __init__(
        self, channel: str, pileup: int, seed: int, pool: Pool | None, lhe: Path | None = None
    ) -> None:
        """Raises GenerationFailed if Pythia rejects the channel's settings or the Les Houches file."""
        self._channel, self._pileup, self._seed, self._pool = channel, pileup, seed, pool
        self._pythia = None
        if lhe is not None:
            self._pythia = Pythia(les_houches(lhe))
        elif channel not in GUNS:
            self._pythia = Pythia(CHANNELS[channel])

    def generate(self, event_id: int) -> GeneratedEvent:
        """One event; raises GenerationFailed."""
        identity = (self._channel, self._seed, event_id)
        hard = self._hard_scatter(event_id)
        at = pileup.places(seeds.generator("place", *identity), 1)
        parts = [_moved(hard, at, np.array([len(hard)]))]
        counts = np.array([len(hard)])
        if self._pool is not None:
            drawn = pileup.draw(self._channel, self._pileup, self._seed, event_id)
            soft, each = self._pool.take(drawn.members)
            parts.append(_moved(_turned(soft, drawn, each), drawn.places, each))
            counts = np.concatenate([counts, each])
        return GeneratedEvent(event_id, _particles(Interaction.join(parts), counts))

    def _hard_scatter(self, event_id: int) -> Interaction:
        identity = (self._channel, self._seed, event_id)
        if self._pythia is None:
            return muons(seeds.generator("hard scatter", *identity), *GUNS[self._channel])
        return self._pythia.generate(seeds.for_pythia("hard scatter", *identity), everything, event_id)


def _turned(soft: Interaction, drawn: Pileup, counts: npt.NDArray[np.int64]) -> Interaction:
    """Each interaction end for end where it was drawn so, then by its angle around the beams."""
    end = np.repeat(np.where(drawn.turned, -1.0, 1.0), counts)
    cosine, sine = np.repeat(np.cos(drawn.angle), counts), np.repeat(np.sin(drawn.angle), counts)

    def rotated(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
        across = end * y
        both = (cosine * x - sine * across, sine * x + cosine * across)
        return [values.astype(np.float32) for values in both]

    px, py = rotated(soft.px, soft.py)
    vx, vy = rotated(soft.vx, soft.vy)
    along = end.astype(np.float32)
    return replace(soft, px=px, py=py, pz=along * soft.pz, vx=vx, vy=vy, vz=along * soft.vz)


def _moved(what: Interaction, to: Places, counts: npt.NDArray[np.int64]) -> Interaction:
    def there(relative: npt.NDArray[np.float32], place: pileup.Floats) -> npt.NDArray[np.float32]:
        return (relative + np.repeat(place, counts)).astype(np.float32)

    return replace(
        what,
        vx=there(what.vx, to.x),
        vy=there(what.vy, to.y),
        vz=there(what.vz, to.z),
        time=there(what.time, to.time),
    )


def _particles(joined: Interaction, counts: npt.NDArray[np.int64]) -> Particles:
    """Numbered from 1; the first interaction is the hard scatter, vertex 1."""
    first = np.repeat(np.cumsum(counts) - counts, counts)
    same = {name: getattr(joined, name) for name in TYPES if name != "parent"}
    return Particles(
        **same,
        particle_id=np.arange(1, len(joined) + 1, dtype=np.uint64),
        vertex_primary=np.repeat(np.arange(1, len(counts) + 1, dtype=np.uint16), counts),
        parent_id=np.where(joined.parent < 0, -1, joined.parent + first + 1).astype(np.int64),
    )


#: GeV; Particle Data Group.
_MUON_MASS: Final = 0.1056583755
_MIN_PT: Final = 1.0
_ETA: Final = (-3.0, 3.0)


def muons(random: np.random.Generator, number: int, max_pt: float) -> Interaction:
    """Muons of either charge at the origin; pT even from 1 GeV to ``max_pt``, η even from -3 to 3, any φ."""
    rows: list[tuple[Any, ...]] = []
    for _ in range(number):
        charge = random.choice((-1, 1))
        pt, eta, phi = random.uniform(_MIN_PT, max_pt), random.uniform(*_ETA), random.uniform(-np.pi, np.pi)
        momentum = (pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta))
        energy = np.hypot(pt * np.cosh(eta), _MUON_MASS)
        rows.append((-13 * charge, charge, _MUON_MASS, *momentum, energy, 0.0, 0.0, 0.0, 0.0, True, -1))
    return Interaction.from_rows(rows)
