"""The whole model: particles in, cells out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.calorimeter.cells import CaloHits, cells
from collidium_plugins.acts_pipeline.calorimeter.flight import Arrivals, Floats, fly
from collidium_plugins.acts_pipeline.calorimeter.geometry import (
    ECAL_LENGTH,
    ECAL_RADIUS,
    HCAL_LENGTH,
    HCAL_RADIUS,
)
from collidium_plugins.acts_pipeline.calorimeter.showers import (
    NONE,
    Spots,
    kinds,
    spots,
    visible_energy,
)
from collidium_plugins.acts_pipeline.events import Particles
from collidium_plugins.acts_pipeline.generation.interaction import LIGHT


def deposits(particles: Particles, generated: int, random: np.random.Generator) -> CaloHits:
    """What the particles of an event leave in the calorimeters.

    The first ``generated`` particles come from the generator, the others from the detector simulation. What
    has decayed leaves nothing; who made others in the detector leaves that much less.
    """
    energy = _left(particles, generated)
    kind = kinds(particles.pdg_id)
    chosen = np.flatnonzero((energy > 0) & (kind != NONE))
    arrivals = fly(
        particles.charge[chosen].astype(np.float64),
        _stacked(particles.px, particles.py, particles.pz)[chosen],
        _stacked(particles.vx, particles.vy, particles.vz)[chosen],
        particles.time[chosen].astype(np.float64),
        particles.energy[chosen].astype(np.float64),
    )
    chosen = chosen[arrivals.index]
    made = spots(kind[chosen], energy[chosen], _steepness(arrivals), random)
    place, further = _places(arrivals, made, random)
    return cells(
        place,
        arrivals.side[made.owner],
        made.in_hcal,
        made.energy,
        arrivals.time[made.owner] + further / LIGHT,
        particles.particle_id[chosen][made.owner],
    )


def _left(particles: Particles, generated: int) -> Floats:
    """Energy that each particle still has for the calorimeters, GeV."""
    energy = visible_energy(
        particles.pdg_id, particles.energy.astype(np.float64), particles.mass.astype(np.float64)
    )
    parents = particles.parent_id
    decayed = np.zeros(len(particles), bool)
    decayed[parents[:generated][parents[:generated] > 0] - 1] = True
    made = np.flatnonzero(parents[generated:] > 0) + generated
    np.subtract.at(energy, parents[made] - 1, particles.energy[made].astype(np.float64))
    return np.where(decayed, 0.0, energy)


def _steepness(arrivals: Arrivals) -> Floats:
    """Cosine of the angle between flight and the normal of the face; flatter than 0.1 is taken for 0.1."""
    outward = arrivals.place[:, :2] / np.hypot(arrivals.place[:, 0], arrivals.place[:, 1])[:, None]
    barrel = np.abs((outward * arrivals.direction[:, :2]).sum(axis=1))
    return np.maximum(np.where(arrivals.side == 0, barrel, np.abs(arrivals.direction[:, 2])), 0.1)


def _places(arrivals: Arrivals, made: Spots, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Where spots lie, mm, and how far they are from where their particle arrived."""
    steepness = _steepness(arrivals)[made.owner]
    gap = np.where(arrivals.side[made.owner] == 0, HCAL_RADIUS - ECAL_RADIUS, HCAL_LENGTH - ECAL_LENGTH)
    further = made.depth + np.where(made.in_hcal, gap / steepness, 0.0)
    direction = arrivals.direction[made.owner]
    sideways, upwards = _across(direction)
    angle = random.uniform(-np.pi, np.pi, len(further))
    offset = made.across[:, None] * (np.cos(angle)[:, None] * sideways + np.sin(angle)[:, None] * upwards)
    return arrivals.place[made.owner] + further[:, None] * direction + offset, further


def _across(direction: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors across each direction and each other."""
    transverse = np.hypot(direction[:, 0], direction[:, 1])
    zero = np.zeros(len(direction))
    sideways = np.stack([-direction[:, 1], direction[:, 0], zero], axis=1) / transverse[:, None]
    return sideways, np.cross(direction, sideways)


def _stacked(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32], z: npt.NDArray[np.float32]) -> Floats:
    return np.stack([x, y, z], axis=1).astype(np.float64)
