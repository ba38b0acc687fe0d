"""Calorimeter deposits, which ACTS's fast simulation lacks: a small parametric model.

The calorimeters stand where those of the Open Data Detector do, as cylinders and disks. Each particle flies
from the tracker to them on its helix (:mod:`flight`), loses its energy there in spots along a shower
(:mod:`showers`), and spots add up in cells (:mod:`cells`). docs/acts-pipeline.md has the formulas
and what they leave out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.calorimeter.cells import CaloHits, cells
from collidium_plugins.acts_pipeline.calorimeter.geometry import (
    ECAL_LENGTH,
    ECAL_RADIUS,
    HCAL_LENGTH,
    HCAL_RADIUS,
    Arrivals,
    Floats,
    fly,
)
from collidium_plugins.acts_pipeline.calorimeter.showers import (
    NONE,
    Spots,
    kinds,
    spots,
    visible_energy,
)
from collidium_plugins.acts_pipeline.events import LEFT, NOT_SIMULATED, Ends, Particles
from collidium_plugins.acts_pipeline.generation.record import LIGHT

__all__ = ["CaloHits", "deposits"]


def deposits(particles: Particles, ends: Ends, random: np.random.Generator) -> CaloHits:
    """What the particles of an event leave in the calorimeters.

    A particle flies on from where it left the tracker, with what it had there; one that was not simulated
    flies from its vertex, unless it decayed.
    """
    state = _states(particles, ends)
    energy = visible_energy(particles.pdg_id, state["energy"], particles.mass.astype(np.float64))
    kind = kinds(particles.pdg_id)
    chosen = np.flatnonzero((energy > 0) & (kind != NONE) & _flies(particles, ends))
    arrivals = fly(
        particles.charge[chosen].astype(np.float64),
        np.stack([state["px"], state["py"], state["pz"]], axis=1)[chosen],
        np.stack([state["x"], state["y"], state["z"]], axis=1)[chosen],
        state["time"][chosen],
        state["energy"][chosen],
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


def _states(particles: Particles, ends: Ends) -> dict[str, Floats]:
    """Of each particle where it leaves the tracker, or else its vertex: place, time, momentum and energy."""
    left = ends.fate == LEFT
    vertex = {"x": particles.vx, "y": particles.vy, "z": particles.vz}
    same = {name: getattr(particles, name) for name in ("time", "px", "py", "pz", "energy")}
    return {
        name: np.where(left, getattr(ends, name), start).astype(np.float64)
        for name, start in {**vertex, **same}.items()
    }


def _flies(particles: Particles, ends: Ends) -> npt.NDArray[np.bool_]:
    """Which particles go on to the calorimeters: what left the tracker, and what it never saw."""
    parents = np.unique(particles.parent_id[particles.parent_id > 0]).astype(np.uint64)
    decayed = np.isin(particles.particle_id, parents)
    flies: npt.NDArray[np.bool_] = (ends.fate == LEFT) | ((ends.fate == NOT_SIMULATED) & ~decayed)
    return flies


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
