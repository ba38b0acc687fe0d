"""Parametric simulation of calorimeters, which FATRAS does not have.

The calorimeters are the polygons of the Open Data Detector. :mod:`geometry` extrapolates particles from the
tracker, :mod:`showers` generates their energy deposits in sensors, and :mod:`cells` sums deposits in cells.
docs/acts-pipeline.md has the formulas and the limits of the model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import SPEED_OF_LIGHT
from collidium_plugins.acts_pipeline.calorimeter.cells import CaloHits, cells
from collidium_plugins.acts_pipeline.calorimeter.geometry import Arrivals, Floats, extrapolate
from collidium_plugins.acts_pipeline.calorimeter.showers import NONE, Spots, kinds, spots, visible_energy
from collidium_plugins.acts_pipeline.events import LEFT, NOT_SIMULATED, Ends, Particles

__all__ = ["CaloHits", "deposits"]


def deposits(particles: Particles, ends: Ends, random: np.random.Generator) -> CaloHits:
    """Return the calorimeter cells that the particles of an event hit.

    A particle that left the tracker starts with its final state there. One that was not simulated in the
    tracker starts at its vertex, unless it decayed.
    """
    state = _states(particles, ends)
    mass = particles.mass.astype(np.float64)
    visible = visible_energy(particles.pdg_id, state["energy"], mass)
    kind = kinds(particles.pdg_id)
    chosen = np.flatnonzero((visible > 0) & (kind != NONE) & _leaves_tracker(particles, ends))
    charge = particles.charge[chosen].astype(np.float64)
    arrivals = extrapolate(
        charge,
        np.stack([state["px"], state["py"], state["pz"]], axis=1)[chosen],
        np.stack([state["x"], state["y"], state["z"]], axis=1)[chosen],
        state["time"][chosen],
        state["energy"][chosen],
    )
    charged = charge[arrivals.index] != 0
    chosen = chosen[arrivals.index]
    kinetic = (state["energy"] - mass)[chosen]
    made = spots(kind[chosen], charged, visible[chosen], kinetic, arrivals, random)
    time = arrivals.time[made.owner] + made.distance / SPEED_OF_LIGHT + made.delay
    owner = particles.particle_id[chosen][made.owner]
    return cells(_positions(arrivals, made), made.region, made.energy, time, owner)


def _states(particles: Particles, ends: Ends) -> dict[str, Floats]:
    """Return position, time, momentum and energy where particles left the tracker, or else at the vertex."""
    left = ends.fate == LEFT
    vertex = {"x": particles.vx, "y": particles.vy, "z": particles.vz}
    same = {name: getattr(particles, name) for name in ("time", "px", "py", "pz", "energy")}
    return {
        name: np.where(left, getattr(ends, name), start).astype(np.float64)
        for name, start in {**vertex, **same}.items()
    }


def _leaves_tracker(particles: Particles, ends: Ends) -> npt.NDArray[np.bool_]:
    """Return the mask of particles that left the tracker, or were not simulated in it and did not decay."""
    parents = np.unique(particles.parent_id[particles.parent_id > 0]).astype(np.uint64)
    decayed = np.isin(particles.particle_id, parents)
    leaves: npt.NDArray[np.bool_] = (ends.fate == LEFT) | ((ends.fate == NOT_SIMULATED) & ~decayed)
    return leaves


def _positions(arrivals: Arrivals, made: Spots) -> Floats:
    """Return the positions of spots, mm, shape (3, spots)."""
    first, second = _perpendicular(arrivals.direction)
    terms = (arrivals.direction, made.distance), (first, made.first), (second, made.second)
    return np.stack(
        [
            arrivals.position[made.owner, axis]
            + sum(offset * directions[made.owner, axis] for directions, offset in terms)
            for axis in range(3)
        ]
    )


def _perpendicular(direction: Floats) -> tuple[Floats, Floats]:
    """Return two unit vectors perpendicular to each direction and to each other."""
    transverse = np.hypot(direction[:, 0], direction[:, 1])
    zero = np.zeros(len(direction))
    first = np.stack([-direction[:, 1], direction[:, 0], zero], axis=1) / transverse[:, None]
    return first, np.cross(direction, first)
