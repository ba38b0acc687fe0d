"""What the reconstruction knows of the Open Data Detector: where which kind of sensor stands, and how well it
measures. Read off the positions of hits; none of it is truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.baselines import EventHits, Floats

#: Transverse distances from the beam, in mm, at which pixels end and long strips begin.
PIXELS_END = 200.0
LONG_STRIPS_BEGIN = 750.0

#: |z|, in mm, from which the sensors of pixels, respectively strips, are those of endcap disks.
PIXEL_DISKS_BEGIN = 600.0
STRIP_DISKS_BEGIN = 1290.0

#: Neighbours from which the density of hits is estimated, and the minimum distance of the last, in mm.
NEIGHBOURS = 4
MIN_NEIGHBOURHOOD = 5.0


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of an event with what is known of their measurement; lengths in mm, arrays of shape (hits,).

    ``across`` is the uncertainty in azimuthal direction, ``along`` that in the sensor's other direction: z
    in the barrel, radial in the endcaps. A long strip is hit anywhere along its length, and its hit is given
    in its middle.
    """

    position: Floats  # (hits, 3)
    radius: Floats
    endcap: npt.NDArray[np.bool_]
    long_strip: npt.NDArray[np.bool_]
    across: Floats
    along: Floats
    #: Uncertainty of z for a fit along the track: in endcaps, that of the radius in disguise.
    sigma_z: Floats
    #: Hits per mm² in the neighbourhood.
    density: Floats


def hits_of(event: EventHits) -> Hits:
    """Classify each hit's sensor by its position."""
    position = np.stack([event.x, event.y, event.z], axis=1)
    radius = np.hypot(event.x, event.y)
    pixel, long_strip = radius < PIXELS_END, radius > LONG_STRIPS_BEGIN
    endcap = np.abs(event.z) > np.where(pixel, PIXEL_DISKS_BEGIN, STRIP_DISKS_BEGIN)

    def by_kind(pixels: float, short: float, long_barrel: float, long_endcap: float) -> Floats:
        long = np.where(endcap, long_endcap, long_barrel)
        return np.where(pixel, pixels, np.where(long_strip, long, short))

    return Hits(
        position=position,
        radius=radius,
        endcap=endcap,
        long_strip=long_strip,
        across=by_kind(0.05, 0.15, 1.5, 1.5),
        along=by_kind(0.08, 0.4, 35.0, 55.0),
        sigma_z=np.where(endcap, by_kind(0.2, 0.2, 20.0, 20.0), by_kind(0.08, 0.4, 35.0, 35.0)),
        density=_density(position),
    )


def _density(position: Floats) -> Floats:
    """Hits per mm² around each hit: NEIGHBOURS in a disk that reaches to the last of them."""
    if len(position) <= 1:
        return np.full(len(position), 1 / (np.pi * MIN_NEIGHBOURHOOD**2))
    distance = np.linalg.norm(position[:, None] - position[None], axis=2)
    neighbours = min(NEIGHBOURS, len(position) - 1)
    reach = np.partition(distance, neighbours, axis=1)[:, neighbours]
    density: Floats = neighbours / (np.pi * np.maximum(reach, MIN_NEIGHBOURHOOD) ** 2)
    return density
