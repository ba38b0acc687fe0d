"""Secondary particles of FATRAS: photons that electrons radiate.

ACTS records of each its generated ancestor and its generation. The parent is inferred from these and from the
energy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.detector.geometry import GEV, NANOSECOND
from collidium_plugins.acts_pipeline.events import Particles


def particle_ids(simulated: Sequence[Any], generated: int) -> npt.NDArray[np.uint64]:
    """The id of each particle: its own, and for secondaries the next ones, in their order."""
    own = np.array([0 if _made(one) else one.particleId.particle for one in simulated], np.uint64)
    new = own == 0
    own[new] = generated + np.arange(1, new.sum() + 1, dtype=np.uint64)
    return own


def made(simulated: Sequence[Any], ids: npt.NDArray[np.uint64]) -> Particles:
    """The secondaries; ``ids`` as of :func:`particle_ids`."""
    places = [place for place, one in enumerate(simulated) if _made(one)]
    new = [simulated[place] for place in places]
    families = _families(zip(simulated, ids.tolist(), strict=True), new)
    rows = np.array([_row(one) for one in new], np.float32).reshape(-1, 10)
    mass, energy, charge, px, py, pz, vx, vy, vz, time = rows.T
    return Particles(
        particle_id=ids[np.array(places, np.int64)],
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
        vertex_primary=np.array([one.particleId.vertexPrimary for one in new], np.uint16),
        parent_id=np.array([_parent(one, families) for one in new], np.int64),
    )


_Family = tuple[int, int]


def _made(particle: Any) -> bool:
    return bool(particle.particleId.generation > 0)


def _family(particle: Any) -> _Family:
    return particle.particleId.vertexPrimary, particle.particleId.particle


def _families(
    particles: Iterable[tuple[Any, int]], new: Sequence[Any]
) -> Mapping[_Family, list[tuple[Any, int]]]:
    """The families of the new particles, each with its members and their ids."""
    wanted = {_family(one) for one in new}
    families: dict[_Family, list[tuple[Any, int]]] = defaultdict(list)
    for one, particle_id in particles:
        family = _family(one)
        if family in wanted:
            families[family].append((one, particle_id))
    return families


def _parent(child: Any, families: Mapping[_Family, list[tuple[Any, int]]]) -> int:
    """The particle with the largest energy loss."""
    generation = child.particleId.generation - 1
    candidates = [
        (one, particle_id)
        for one, particle_id in families[_family(child)]
        if one.particleId.generation == generation
    ]
    return max(candidates, key=lambda candidate: candidate[0].energyLoss)[1]


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
