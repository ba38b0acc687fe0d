"""Photons that electrons radiate in FATRAS: since nothing else happens to particles there, all it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.detector.geometry import GEV, NANOSECOND
from collidium_plugins.acts_pipeline.events import Particles


def identified(simulated: Sequence[Any], before: int) -> tuple[npt.NDArray[np.uint64], Particles]:
    """The id of each particle that FATRAS returns, and those among them that it made.

    Ids are the particles' own, and for what was made the next ones after ``before``, in their order. ACTS
    gives a photon the barcode of the electron, but for its generation.
    """
    barcodes = [one.particleId for one in simulated]
    parts = [(one.particle, one.vertexPrimary, one.generation) for one in barcodes]
    ids, vertex, generation = np.array(parts, np.uint64).reshape(-1, 3).T.copy()
    places = np.flatnonzero(generation > 0)
    parents = ids[places]
    ids[places] = before + np.arange(1, len(places) + 1, dtype=np.uint64)
    new = [simulated[place] for place in places.tolist()]
    rows = np.array([_row(one) for one in new], np.float32).reshape(-1, 10)
    mass, energy, charge, px, py, pz, vx, vy, vz, time = rows.T
    return ids, Particles(
        particle_id=ids[places],
        pdg_id=np.array([int(one.pdg) for one in new], np.int64),
        mass=mass,
        energy=energy,
        charge=charge,
        px=px,
        py=py,
        pz=pz,
        vx=vx,
        vy=vy,
        vz=vz,
        time=time,
        primary=np.zeros(len(new), np.bool_),
        vertex_primary=vertex[places].astype(np.uint16),
        parent_id=parents.astype(np.int64),
    )


def _row(particle: Any) -> tuple[float, ...]:
    position, momentum = particle.fourPosition, particle.fourMomentum
    return (
        particle.mass / GEV,
        particle.energy / GEV,
        particle.charge,
        *(momentum[axis] / GEV for axis in range(3)),
        *(position[axis] for axis in range(3)),
        position[3] / NANOSECOND,
    )
