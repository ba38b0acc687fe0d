"""Synthetic events for performance tests: helices with noise, without physics.

Events have the size, columns and ids of real ones at pileup 200, are generated in milliseconds, and are
reproducible by seed and event id. Charged particles start near the beams, follow helices in a field of 3 T
and leave a smeared hit on each cylinder and disk that they cross. Noise hits are added. There are no decays,
no material and no vertices, and momenta have an exponential distribution. Label results as synthetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts import FIELD_TESLA
from collidium.contracts.tables import nested
from collidium.datasets.schemas import SCHEMAS
from collidium.physics.constants import BENDING

Columns = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.floating[Any]]

#: Radii and half lengths of cylinders, and positions and radii of disks; mm.
_RADII: Final = np.array([33, 69, 115, 171, 261, 361, 501, 661, 821, 1021], np.float32)
_HALF_LENGTHS: Final = np.array([580] * 4 + [1250] * 6, np.float32)
_DISKS: Final = np.array([620, 720, 840, 980, 1120, 1320, 1520, 1850, 2200, 2550, 2950], np.float32)
_INNER, _OUTER = 35.0, 1030.0
_PIXEL_BARRELS, _PIXEL_DISKS = 4, 7
#: Volumes of pixel and strip barrels in the Open Data Detector, and the hosted detector codes.
_VOLUMES: Final = (17, 24)
_DETECTORS: Final = (1, 4)
#: Transverse momentum in GeV per mm of the helix radius.
_BEND: Final = np.float32(FIELD_TESLA * BENDING)
_LIGHT: Final = np.float32(299.792458)
_PION: Final = np.float32(0.1396)
#: Standard deviation of a measured position, mm.
_BLUR: Final = np.float32(0.02)
#: Mean hits of a particle, less a margin: surplus hits are dropped.
_HITS_OF_ONE: Final = 12.5


@dataclass(frozen=True, slots=True)
class SyntheticEvents:
    """Events with exactly ``hits`` hits each. Raises ValueError for invalid sizes."""

    hits: int = 150_000
    #: Approximate fraction of noise hits.
    noise: float = 0.1
    seed: int = 42

    def __post_init__(self) -> None:
        if self.hits < 1 or not 0 <= self.noise <= 1:
            raise ValueError(f"no event has {self.hits} hits of which {self.noise} are noise")

    def event(self, event_id: int) -> dict[str, Columns]:
        """Generate an event: the columns of the hosted tables ``particles`` and ``tracker_hits``."""
        random = np.random.Generator(np.random.SFC64([self.seed, event_id]))
        wanted = round(self.hits * (1 - self.noise))
        particles = _particles(int(wanted / _HITS_OF_ONE) + 1, random)
        layer, owner, radius, angle, z, path = _crossings(particles, wanted)
        hits = _tracker_hits(layer, radius, angle, z, path, self.hits, random)
        ids = np.zeros(self.hits, np.uint64)
        ids[: len(owner)] = particles["particle_id"][owner]
        order = np.argsort(hits["layer_id"].astype(np.uint8), kind="stable")
        number = np.bincount(owner, minlength=len(particles["particle_id"]))
        return {
            "particles": particles | {"num_tracker_hits": number.astype(np.uint16)},
            "tracker_hits": {name: column[order] for name, column in (hits | {"particle_id": ids}).items()},
        }

    def tables(self, event_ids: range) -> dict[str, pa.Table]:
        """Generate events as hosted tables, one row per event."""
        events = [self.event(event_id) for event_id in event_ids]
        ids = pa.array(event_ids, pa.uint32())
        tables = {}
        for name in ("particles", "tracker_hits"):
            schema = SCHEMAS[name]
            columns = [
                nested(
                    [len(event[name][field.name]) for event in events],
                    np.concatenate([event[name][field.name] for event in events]),
                )
                for field in list(schema)[1:]
            ]
            tables[name] = pa.Table.from_arrays([ids, *columns], schema=schema)
        return tables


def _particles(count: int, random: np.random.Generator) -> Columns:
    """Charged pions from near the beams, with large ids as in real events."""
    pt = random.exponential(1.0, count).astype(np.float32) + np.float32(0.3)
    eta = random.uniform(-3, 3, count).astype(np.float32)
    phi = random.uniform(-np.pi, np.pi, count).astype(np.float32)
    charge = random.choice(np.array([-1, 1], np.float32), count)
    z = random.normal(0, 50, count).astype(np.float32)
    none = np.zeros(count, np.float32)
    return {
        "particle_id": np.cumsum(random.integers(1, 2**20, count)).astype(np.uint64) + np.uint64(2**60),
        "pdg_id": (211 * charge).astype(np.int64),
        "mass": np.full(count, _PION),
        "energy": np.hypot(pt * np.cosh(eta), _PION),
        "charge": charge,
        "px": pt * np.cos(phi),
        "py": pt * np.sin(phi),
        "pz": pt * np.sinh(eta),
        **dict.fromkeys(("vx", "vy", "time", "perigee_d0"), none),
        "vz": z,
        "perigee_z0": z,
        "num_calo_hits": none.astype(np.uint16),
        "primary": np.ones(count, bool),
        "vertex_primary": np.ones(count, np.uint16),
        "parent_id": np.full(count, -1, np.int64),
    }


def _crossings(
    particles: Columns, wanted: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats, Floats, Floats, Floats]:
    """Layer, particle, radius, angle, z and path (mm) of the first crossings, by particle.

    A helix from the beam line is at radius r after a turning angle of 2 asin(r / 2R); the azimuth changes by
    half of it.
    """
    pt = np.hypot(particles["px"], particles["py"])[:, None]
    twice = 2 * pt / _BEND
    slope = particles["pz"][:, None] / pt
    start = particles["vz"][:, None]
    with np.errstate(invalid="ignore"):
        half = np.arcsin(_RADII / twice)
    along = start + twice * half * slope
    on_cylinder = np.abs(along) < _HALF_LENGTHS  # False for NaN

    place = np.copysign(_DISKS, slope)
    half_turn = (place - start) / slope / twice
    radius = twice * np.sin(half_turn)
    on_disk = (half_turn > 0) & (half_turn < np.pi / 2) & (radius > _INNER) & (radius < _OUTER)

    owner, layer = np.nonzero(np.concatenate([on_cylinder, on_disk], axis=1))
    owner, layer = owner[:wanted], layer[:wanted]
    turns = np.concatenate([half, half_turn], axis=1)[owner, layer]
    radii = np.concatenate([np.broadcast_to(_RADII, half.shape), radius], axis=1)[owner, layer]
    heights = np.concatenate([along, place], axis=1)[owner, layer]
    angle = np.arctan2(particles["py"], particles["px"])[owner] - particles["charge"][owner] * turns
    path = (twice * np.hypot(1, slope))[owner, 0] * turns
    return layer, owner, radii, angle, heights, path


def _tracker_hits(
    layer: npt.NDArray[np.intp],
    radius: Floats,
    angle: Floats,
    z: Floats,
    path: Floats,
    count: int,
    random: np.random.Generator,
) -> Columns:
    """Smeared hits of the crossings, and noise hits up to ``count``."""
    noise = count - len(layer)
    layer = np.concatenate([layer, random.integers(0, len(_RADII), noise)])
    barrel = layer < len(_RADII)
    radius = np.concatenate([radius, _RADII[layer[-noise:]] if noise else radius[:0]])
    angle = np.concatenate([angle, random.uniform(-np.pi, np.pi, noise).astype(np.float32)])
    reach = _HALF_LENGTHS[layer[-noise:]] if noise else z[:0]
    z = np.concatenate([z, reach * random.uniform(-1, 1, noise).astype(np.float32)])
    true = {"true_x": radius * np.cos(angle), "true_y": radius * np.sin(angle), "true_z": z}
    blur = random.standard_normal((3, count), np.float32) * _BLUR
    strips = np.where(barrel, layer >= _PIXEL_BARRELS, layer - len(_RADII) >= _PIXEL_DISKS).astype(np.intp)
    time = np.zeros(count, np.float32)
    time[: len(path)] = path / _LIGHT
    return {
        **{name.removeprefix("true_"): true[name] + shift for name, shift in zip(true, blur, strict=True)},
        **true,
        "time": time,
        "volume_id": (np.array(_VOLUMES)[strips] + ~barrel * np.sign(z)).astype(np.uint8),
        "layer_id": layer.astype(np.uint16),
        "surface_id": (layer * 4096 + ((angle + np.pi) * 80).astype(np.intp) % 512).astype(np.uint32),
        "detector": (np.array(_DETECTORS)[strips] + ~barrel * np.sign(z)).astype(np.uint8),
    }
