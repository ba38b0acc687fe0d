"""The majority particle of tracks, and the perigee of particles: pure functions of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from collidium.physics import Helix
from collidium_plugins.acts_pipeline.events import Floats, Particles


def majority(owners: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint64]:
    """For each track the particle that owns most of its hits; of several the one with the smallest id.

    ``owners`` are those of the hits of all tracks, one track after the other; ``counts`` says how many hits
    each has, at least one.
    """
    track = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((owners, track))
    track, owners = track[order], owners[order]
    begins = np.ones(len(owners), np.bool_)
    begins[1:] = (track[1:] != track[:-1]) | (owners[1:] != owners[:-1])
    group = np.flatnonzero(begins)
    hits = np.diff(group, append=len(owners))
    best = group[np.lexsort((owners[group], -hits, track[group]))]
    return owners[best[np.unique(track[best], return_index=True)[1]]]


def perigee(particles: Particles, field: float) -> tuple[Floats, Floats]:
    """d0 and z0 of particles, mm: of the point of the helix that is nearest to the z axis.

    ``field`` in tesla, along z.
    """
    columns = {name: getattr(particles, name) for name in ("px", "py", "pz", "vx", "vy", "vz", "charge")}
    d0, z0, _ = Helix.from_particles(columns, field).perigee()
    return d0.astype(np.float32), z0.astype(np.float32)
