"""Calorimeter deposits, which ACTS's fast simulation lacks: a small parametric model.

The calorimeters are the polygons of the Open Data Detector. Each particle flies from the tracker through them
(:mod:`geometry`), leaves deposits of about a minimum-ionising particle in their sensors (:mod:`showers`),
and deposits add up in cells (:mod:`cells`). docs/acts-pipeline.md has the formulas and what they leave out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.calorimeter.cells import CaloHits, cells
from collidium_plugins.acts_pipeline.calorimeter.geometry import Arrivals, Floats, fly
from collidium_plugins.acts_pipeline.calorimeter.showers import NONE, Spots, kinds, spots, visible_energy
from collidium_plugins.acts_pipeline.events import LEFT, NOT_SIMULATED, Ends, Particles
from collidium_plugins.acts_pipeline.generation.record import LIGHT

__all__ = ["CaloHits", "deposits"]


def deposits(particles: Particles, ends: Ends, random: np.random.Generator) -> CaloHits:
    """What the particles of an event leave in the calorimeters.

    A particle flies on from where it left the tracker, with what it had there; one that was not simulated
    flies from its vertex, unless it decayed.
    """
    state = _states(particles, ends)
    mass = particles.mass.astype(np.float64)
    visible = visible_energy(particles.pdg_id, state["energy"], mass)
    kind = kinds(particles.pdg_id)
    chosen = np.flatnonzero((visible > 0) & (kind != NONE) & _flies(particles, ends))
    charge = particles.charge[chosen].astype(np.float64)
    arrivals = fly(
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
    time = arrivals.time[made.owner] + made.distance / LIGHT + made.delay
    owner = particles.particle_id[chosen][made.owner]
    return cells(_places(arrivals, made), made.region, made.energy, time, owner)


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


def _places(arrivals: Arrivals, made: Spots) -> Floats:
    """Where spots lie, mm, shape (3, spots)."""
    sideways, upwards = _across(arrivals.direction)
    terms = (arrivals.direction, made.distance), (sideways, made.across), (upwards, made.upwards)
    return np.stack(
        [
            arrivals.place[made.owner, axis]
            + sum(far * directions[made.owner, axis] for directions, far in terms)
            for axis in range(3)
        ]
    )


def _across(direction: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors across each direction and each other."""
    transverse = np.hypot(direction[:, 0], direction[:, 1])
    zero = np.zeros(len(direction))
    sideways = np.stack([-direction[:, 1], direction[:, 0], zero], axis=1) / transverse[:, None]
    return sideways, np.cross(direction, sideways)
