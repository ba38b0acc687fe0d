"""Hadronic interactions, decays in flight and photon conversions: their vertices and their products.

FATRAS first propagates a particle without these processes. Then the trajectory is cut where the particle
interacts, decays or converts, and its products are simulated in turn. Material is on cylinders and discs,
that of modules averaged over their layer; the free path in interaction or radiation lengths is exponential.
Products of hadrons are in :mod:`.hadrons`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import SPEED_OF_LIGHT
from collidium_plugins.acts_pipeline.detector import layout, material
from collidium_plugins.acts_pipeline.detector.hadrons import LIFETIMES, SHORT, ReactionPool
from collidium_plugins.acts_pipeline.events import ENDED, NOT_SIMULATED, Ends, Particles, SimulatedHits

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Cross section relative to that of nucleons, from Pythia for silicon at 10 GeV.
CROSS_SECTION: Final = {211: 342 / 436, 321: 266 / 436, 130: 266 / 436, 310: 266 / 436}
PHOTON: Final = 22
_ELECTRON_MASS: Final = 0.510999e-3
#: Minimum kinetic energy of hadrons that interact, GeV.
_MIN_ENERGY: Final = 0.02
#: Maximum path in a sheet over its thickness.
_MAX_SLANT: Final = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Material on a cylinder around the beams, or on a disc; lengths in mm."""

    cylinder: bool
    #: Radius of a cylinder or z of a disc, and the range in z or in radius.
    at: float
    low: float
    high: float
    #: Interaction and radiation lengths at normal incidence, shape (bins, 2), in bins of z or of the radius
    #: that are separated by ``edges``.
    edges: Floats
    lengths: Floats


class TrackerMaterial:
    """All sheets of the tracker."""

    def __init__(self, sheets: Sequence[Sheet]) -> None:
        self._kinds = [
            (cylinder, _Sheets([sheet for sheet in sheets if sheet.cylinder == cylinder]))
            for cylinder in (True, False)
        ]

    def crossings(self, begin: Floats, end: Floats) -> tuple[Integers, Floats, Floats]:
        """Find the crossings of sheets by straight segments.

        Parameters
        ----------
        begin, end : numpy.ndarray of float64, shape (3, segments)
            Positions, mm.

        Returns
        -------
        segment : numpy.ndarray of int64, shape (crossings,)
            Sorted.
        fraction : numpy.ndarray of float64, shape (crossings,)
            Position of the crossing along the segment, from 0 to 1; sorted within a segment.
        lengths : numpy.ndarray of float64, shape (crossings, 2)
            Material in interaction and radiation lengths.
        """
        radii = [np.hypot(position[0], position[1]) for position in (begin, end)]
        z = [begin[2], end[2]]
        lengths = np.sqrt(((end - begin) ** 2).sum(axis=0))
        found = [
            sheets.crossings(*((radii, z) if cylinder else (z, radii)), lengths)
            for cylinder, sheets in self._kinds
        ]
        segment, fraction, material_lengths = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((fraction, segment))
        return segment[order], fraction[order], material_lengths[order]


class _Sheets:
    """All cylinders, or all discs, as arrays; padded to the same number of bins."""

    def __init__(self, sheets: Sequence[Sheet]) -> None:
        self._at, self._low, self._high = np.array([(one.at, one.low, one.high) for one in sheets]).T
        bins = max(len(one.lengths) for one in sheets)
        self._edges, self._lengths = np.full((len(sheets), bins), np.inf), np.zeros((len(sheets), bins, 2))
        for row, one in enumerate(sheets):
            self._edges[row, : len(one.edges)] = one.edges
            self._lengths[row, : len(one.lengths)] = one.lengths

    def crossings(
        self, across: Sequence[Floats], along: Sequence[Floats], lengths: Floats
    ) -> tuple[Integers, Floats, Floats]:
        """Find crossings of segments by their ends ``across`` and ``along`` the sheets."""
        at = self._at[:, None]
        sheet, segment = np.nonzero((across[0] < at) != (across[1] < at))
        first, second = (one[segment] for one in across)
        fraction = (self._at[sheet] - first) / (second - first)
        position = along[0][segment] * (1 - fraction) + along[1][segment] * fraction
        slant = np.minimum(lengths[segment] / np.abs(second - first), _MAX_SLANT)
        inside = (position >= self._low[sheet]) & (position <= self._high[sheet])
        sheet, position = sheet[inside], position[inside]
        bins = (self._edges[sheet] < position[:, None]).sum(axis=1)
        return segment[inside], fraction[inside], self._lengths[sheet, bins] * slant[inside, None]


def sheets(slabs: Mapping[str, material.Slab | material.Bins]) -> list[Sheet]:
    """Return the sheets of the tracker from its ``slabs`` (:func:`material.slabs`)."""
    found = []
    inner = 0.0
    for system in layout.systems():
        outer: float = material.MAP["surfaces"][f"{system.name}Outside"]["r"]
        for volume in system.volumes:
            _, of_module = _lengths(slabs[str(volume.volume_id)])
            found += [_layer(layer, of_module) for layer in volume.layers]
        for name, surface in material.MAP["surfaces"].items():
            if name.startswith(system.name) and "z" in surface:
                found += [
                    Sheet(False, side * surface["z"], inner, outer, *_lengths(slabs[f"{name}{sign}"]))
                    for side, sign in ((-1, "-"), (1, "+"))
                ]
        inner = outer
    tubes = {name: one["r"] for name, one in material.MAP["surfaces"].items() if "r" in one}
    tubes |= {"BeamPipe": layout.BEAM_PIPE_RADIUS, "Solenoid": layout.SOLENOID_RADIUS}
    half = layout.HALF_LENGTH
    return found + [
        Sheet(True, radius, -half, half, *_lengths(slabs[name])) for name, radius in tubes.items()
    ]


def _lengths(slab: material.Slab | material.Bins) -> tuple[Floats, Floats]:
    """Return inner edges of bins, and their interaction and radiation lengths."""
    edges, slabs = (slab.edges[1:-1], slab.slabs) if isinstance(slab, material.Bins) else ((), [slab])
    lengths = [(material.interaction_lengths(one), material.radiation_lengths(one)) for one in slabs]
    return np.array(edges), np.array(lengths)


def _layer(layer: layout.Layer, length: Floats) -> Sheet:
    """Return the material of a layer's modules, averaged over the layer."""
    centres = np.array([module.centre for module in layer.modules])
    half = np.array([module.half_lengths for module in layer.modules])
    areas = 2 * half[:, -1] * (half[:, 0] + half[:, -2] if half.shape[1] == 3 else 2 * half[:, 0])
    radius = np.hypot(centres[:, 0], centres[:, 1])
    if layer.barrel:
        at, high = radius.mean(), (np.abs(centres[:, 2]) + half[:, -1]).max()
        low, whole = -high, 4 * np.pi * at * high
    else:
        at, low, high = centres[:, 2].mean(), (radius - half[:, -1]).min(), (radius + half[:, -1]).max()
        whole = np.pi * (high**2 - low**2)
    return Sheet(layer.barrel, at, low, high, np.empty(0), length * areas.sum() / whole)


@dataclass(frozen=True, slots=True, eq=False)
class SecondaryVertices:
    """Vertices at which particles interact, decay or convert, one entry each."""

    #: Index of the particle.
    index: Integers
    #: Position, mm, shape (3, vertices), and time, ns.
    position: Floats
    time: Floats
    decays: npt.NDArray[np.bool_]


def secondary_vertices(
    particles: Particles,
    ends: Ends,
    hits: SimulatedHits,
    generated: int,
    tracker: TrackerMaterial,
    random: np.random.Generator,
) -> SecondaryVertices:
    """Return the vertices at which simulated particles interact, decay or convert.

    Parameters
    ----------
    particles, ends, hits
        Particles, and their final states and hits without these processes.
    generated : int
        Number of particles of the generator, which come first. Only other ones decay if they are short-lived.
    tracker : TrackerMaterial
    random : numpy.random.Generator
    """
    pdg = np.abs(particles.pdg_id)
    energy, mass = particles.energy.astype(np.float64), particles.mass.astype(np.float64)
    photon = pdg == PHOTON
    hadron = (pdg > 100) & (pdg < 10_000) & (energy - mass > _MIN_ENERGY)
    chosen = np.flatnonzero((ends.fate != NOT_SIMULATED) & (hadron | photon))
    strength = np.where(photon, _conversions(energy), 1.0)
    for kind, factor in CROSS_SECTION.items():
        strength[pdg == kind] = factor
    lifetime = np.full(len(pdg), np.inf)
    for kind, flight in (LIFETIMES | SHORT).items():
        decaying = pdg == kind
        decaying[:generated] &= kind in LIFETIMES
        lifetime[decaying] = flight
    free_path, age = random.exponential(size=(2, len(chosen)))
    with np.errstate(invalid="ignore"):
        age = age * lifetime[chosen] / SPEED_OF_LIGHT * energy[chosen] / mass[chosen]

    # Interactions and conversions: the first crossing beyond the free path.
    owner, position, time = _trajectories(particles, ends, hits, chosen)
    segments = np.flatnonzero(owner[1:] == owner[:-1])
    segment, fraction, length = tracker.crossings(position[:, segments], position[:, segments + 1])
    of = owner[segments[segment]]
    depth = np.cumsum(np.where(photon[chosen][of], length[:, 1], length[:, 0]) * strength[chosen][of])
    first = np.searchsorted(of, np.arange(len(chosen)))
    depth -= np.append(0.0, depth)[first][of]
    beyond = np.flatnonzero(depth > free_path[of])
    interacts, at = np.unique(of[beyond], return_index=True)
    at = beyond[at]
    when = np.full(len(chosen), np.inf)
    when[interacts] = _interpolated(time, segments[segment[at]], fraction[at])

    # Decays before that and before the end of the trajectory.
    birth, death = time[np.searchsorted(owner, np.arange(len(chosen)))], np.zeros(len(chosen))
    np.maximum.at(death, owner, time)
    decays = (birth + age < np.minimum(when, death)) & np.isfinite(age)
    when[decays] = (birth + age)[decays]

    ending = np.flatnonzero(np.isfinite(when))
    before = np.searchsorted(owner, ending) + _segment_numbers(owner, time, when, ending)
    width = time[before + 1] - time[before]
    fraction = np.clip((when[ending] - time[before]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    vertex = _interpolated(position, before, fraction)
    return SecondaryVertices(chosen[ending], vertex, when[ending], decays[ending])


def _conversions(energy: Floats) -> Floats:
    """Return the mean number of conversions of photons of ``energy`` (GeV) per radiation length.

    Y. Tsai, Rev. Mod. Phys. 46 (1974) 815, for aluminium, as fitted by FATRAS from 0.1 to 100 GeV.
    """
    missing: Floats = 0.0769040 * np.maximum(energy, 0.05) ** -0.607682 - 0.00701612
    return 7 / 9 * (1 - np.maximum(missing, 0.0))


def _pairs(energy: Floats, random: np.random.Generator) -> Floats:
    """Return electrons, then positrons, of photons of ``energy`` along z, as ``ReactionPool.products`` does.

    The density of the electron's energy fraction x is proportional to 1 - 4/3 x (1 - x) (complete screening);
    that of angles is Tsai's. Source: Geant4 Physics Reference Manual, gamma conversion.
    """
    uniform = random.uniform(-1.0, 1.0, len(energy))
    share = 0.5 + 0.5 * np.where(random.random(len(energy)) < 6 / 7, uniform, np.cbrt(uniform))
    energies = np.maximum(np.concatenate([share, 1 - share]) * np.tile(energy, 2), 1.001 * _ELECTRON_MASS)
    scale = np.where(random.random(len(energy)) < 0.25, 1.6, 1.6 / 3)
    angle = np.minimum(np.tile(random.gamma(2.0, scale), 2) * _ELECTRON_MASS / energies, 1.0)
    charge = np.repeat([-1.0, 1.0], len(energy))
    p = np.sqrt(energies**2 - _ELECTRON_MASS**2)
    momenta = (-charge * p * np.sin(angle), 0 * p, p * np.cos(angle))
    return np.stack([-11 * charge, *momenta, energies, np.full(len(p), _ELECTRON_MASS), charge], axis=1)


def _rotated(local: Floats, direction: Floats, angle: Floats) -> Floats:
    """Rotate vectors by an angle around z, then z into a direction; all have shape (3, vectors)."""
    x, y, z = direction
    across = np.hypot(x, y)
    cosine, sine = np.where(across > 0, (x, y) / np.where(across > 0, across, 1.0), [[1.0], [0.0]])
    out = local[0] * np.cos(angle) - local[1] * np.sin(angle)
    side = local[0] * np.sin(angle) + local[1] * np.cos(angle)
    rotated: Floats = (
        out * (cosine * z, sine * z, -across) + side * (-sine, cosine, 0 * x) + local[2] * direction
    )
    return rotated


def _trajectories(
    particles: Particles, ends: Ends, hits: SimulatedHits, chosen: Integers
) -> tuple[Integers, Floats, Floats]:
    """Return the points of the chosen particles, vertex, hits and end, in the order of flight.

    Returns the number of each point's particle, positions of shape (3, points), and times.
    """
    number = np.full(len(particles) + 1, -1)
    number[chosen + 1] = np.arange(len(chosen))
    of_hits = number[hits.particle_id.astype(np.int64)]
    seen = of_hits >= 0
    every = np.arange(len(chosen))
    owner = np.concatenate([every, of_hits[seen], every])
    rank = np.repeat([0, 1, 2], [len(every), seen.sum(), len(every)])
    vertex: list[npt.NDArray[Any]] = [particles.time, particles.vx, particles.vy, particles.vz]
    crossed: list[npt.NDArray[Any]] = [hits.time, hits.x, hits.y, hits.z]
    last: list[npt.NDArray[Any]] = [ends.time, ends.x, ends.y, ends.z]
    points = np.stack(
        [
            np.concatenate([first[chosen], middle[seen], end[chosen]]).astype(np.float64)
            for first, middle, end in zip(vertex, crossed, last, strict=True)
        ]
    )
    order = np.lexsort((points[0], rank, owner))
    return owner[order], points[1:, order], points[0, order]


def _interpolated(values: Floats, before: Integers, fraction: Floats) -> Floats:
    found: Floats = values[..., before] * (1 - fraction) + values[..., before + 1] * fraction
    return found


def _segment_numbers(owner: Integers, time: Floats, when: Floats, ending: Integers) -> Integers:
    """Return the number of the segment of each ending particle's trajectory in which it ends."""
    counts = np.bincount(owner[time < when[owner]], minlength=len(when))[ending]
    points = np.bincount(owner, minlength=len(when))[ending]
    return np.clip(counts - 1, 0, points - 2)


def truncated(
    ends: Ends, hits: SimulatedHits, particles: Particles, vertices: SecondaryVertices
) -> tuple[Ends, SimulatedHits]:
    """Return final states at the secondary vertices, and hits before them."""
    until = np.full(len(particles) + 1, np.inf)
    until[vertices.index + 1] = vertices.time
    changed = {name: getattr(ends, name).copy() for name in ("fate", "x", "y", "z", "time")}
    for column, value in zip(changed.values(), (ENDED, *vertices.position, vertices.time), strict=True):
        column[vertices.index] = value
    return replace(ends, **changed), hits.select(hits.time <= until[hits.particle_id.astype(np.int64)])


def products(
    particles: Particles,
    vertices: SecondaryVertices,
    field: float,
    pool: ReactionPool,
    random: np.random.Generator,
) -> Particles:
    """Return the products of interactions, decays and conversions; their ids follow those of ``particles``.

    ``field`` is in tesla. Energy losses before the vertex are neglected.
    """
    index = vertices.index
    momentum = np.stack([getattr(particles, name)[index] for name in ("px", "py", "pz")]).astype(np.float64)
    flight_time = vertices.time - particles.time[index]
    turn = -particles.charge[index] * field * 1e-6 * SPEED_OF_LIGHT**2 * flight_time / particles.energy[index]
    momentum[0], momentum[1] = (
        momentum[0] * np.cos(turn) - momentum[1] * np.sin(turn),
        momentum[0] * np.sin(turn) + momentum[1] * np.cos(turn),
    )
    p = np.linalg.norm(momentum, axis=0)
    photon = particles.pdg_id[index] == PHOTON
    hadrons, photons = np.flatnonzero(~photon), np.flatnonzero(photon)
    made = [
        pool.products(*hadron, random)
        for hadron in zip(
            particles.pdg_id[index[hadrons]].tolist(),
            p[hadrons].tolist(),
            particles.mass[index[hadrons]].tolist(),
            vertices.decays[hadrons].tolist(),
            strict=True,
        )
    ]
    of = np.concatenate([np.repeat(hadrons, [len(one) for one in made]), photons, photons])
    rows = np.concatenate([np.empty((0, 7)), *made, _pairs(p[photons], random)])
    angle = random.uniform(-np.pi, np.pi, len(p))
    pdg_id, _, _, _, energy, mass, charge = rows.T
    px, py, pz = _rotated(rows.T[1:4], (momentum / p)[:, of], angle[of])
    parents = index[of]
    vx, vy, vz = vertices.position[:, of]
    columns = {"mass": mass, "energy": energy, "charge": charge, "px": px, "py": py, "pz": pz}
    columns |= {"vx": vx, "vy": vy, "vz": vz, "time": vertices.time[of]}
    return Particles(
        particle_id=len(particles) + np.arange(1, len(of) + 1, dtype=np.uint64),
        pdg_id=pdg_id.astype(np.int64),
        primary=np.zeros(len(of), np.bool_),
        vertex_primary=particles.vertex_primary[parents],
        parent_id=particles.particle_id[parents].astype(np.int64),
        **{name: column.astype(np.float32) for name, column in columns.items()},
    )
