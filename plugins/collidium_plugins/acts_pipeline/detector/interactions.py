"""Hadronic interactions, decays in flight and conversions of photons: where they happen, and what they make.

A particle is first followed as if nothing happened to it; then it is cut off where it interacts, decays or
converts, and its products are simulated in turn. Where: material lies on cylinders and discs, that of modules
averaged over their layer, and an exponential number of interaction or radiation lengths on the way decides.
What comes of hadrons is in :mod:`hadrons`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.detector import layout, material
from collidium_plugins.acts_pipeline.detector.hadrons import LIFETIMES, SHORT, Pool
from collidium_plugins.acts_pipeline.events import ENDED, NOT_SIMULATED, Ends, Particles, SimulatedHits
from collidium_plugins.acts_pipeline.generation.record import LIGHT

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Cross section over that of nucleons, by Pythia's values for silicon at 10 GeV.
CROSS_SECTION: Final = {211: 342 / 436, 321: 266 / 436, 130: 266 / 436, 310: 266 / 436}
PHOTON: Final = 22
_ELECTRON: Final = 0.510999e-3
#: Hadrons of less kinetic energy, GeV, do not interact.
_MIN_ENERGY: Final = 0.02
#: Flatter incidence than 1 in so many counts as that.
_FLATTEST: Final = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Material on a cylinder around the beams, or on a disc; lengths in mm."""

    cylinder: bool
    #: Radius of a cylinder, z of a disc, and the range of z or of the radius.
    at: float
    low: float
    high: float
    #: Interaction and radiation lengths at right angles, shape (bins, 2), in bins of z or of the radius
    #: between inner edges.
    edges: Floats
    lengths: Floats


class Tracker:
    """All sheets of the tracker, as arrays: first cylinders, then discs."""

    def __init__(self, sheets: Sequence[Sheet]) -> None:
        """Of these sheets, in any order."""
        self._kinds = [
            (cylinder, _Sheets([sheet for sheet in sheets if sheet.cylinder == cylinder]))
            for cylinder in (True, False)
        ]

    def crossed(self, begin: Floats, end: Floats) -> tuple[Integers, Floats, Floats]:
        """Which straight segments cross a sheet, at which part of their length, and how much material it is.

        Places have shape (3, segments); there is an entry for each crossing, by segment and part. Material is
        in interaction and radiation lengths, shape (crossings, 2).
        """
        radii = [np.hypot(place[0], place[1]) for place in (begin, end)]
        heights = [begin[2], end[2]]
        long = np.sqrt(((end - begin) ** 2).sum(axis=0))
        found = [
            sheets.crossed(*((radii, heights) if cylinder else (heights, radii)), long)
            for cylinder, sheets in self._kinds
        ]
        segment, part, length = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((part, segment))
        return segment[order], part[order], length[order]


class _Sheets:
    """Sheets of one kind; bins are padded to the same number."""

    def __init__(self, sheets: Sequence[Sheet]) -> None:
        self._at, self._low, self._high = np.array([(one.at, one.low, one.high) for one in sheets]).T
        bins = max(len(one.lengths) for one in sheets)
        self._edges, self._lengths = np.full((len(sheets), bins), np.inf), np.zeros((len(sheets), bins, 2))
        for row, one in enumerate(sheets):
            self._edges[row, : len(one.edges)] = one.edges
            self._lengths[row, : len(one.lengths)] = one.lengths

    def crossed(
        self, across: Sequence[Floats], along: Sequence[Floats], long: Floats
    ) -> tuple[Integers, Floats, Floats]:
        at = self._at[:, None]
        sheet, segment = np.nonzero((across[0] < at) != (across[1] < at))
        first, second = (one[segment] for one in across)
        part = (self._at[sheet] - first) / (second - first)
        place = along[0][segment] * (1 - part) + along[1][segment] * part
        slant = np.minimum(long[segment] / np.abs(second - first), _FLATTEST)
        inside = (place >= self._low[sheet]) & (place <= self._high[sheet])
        sheet, place = sheet[inside], place[inside]
        bins = (self._edges[sheet] < place[:, None]).sum(axis=1)
        return segment[inside], part[inside], self._lengths[sheet, bins] * slant[inside, None]


def sheets(slabs: Mapping[str, material.Slab | material.Bins]) -> list[Sheet]:
    """The tracker's material with the lengths of ``slabs``, as of :func:`material.slabs`."""
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
    """Inner edges of bins and their interaction and radiation lengths."""
    edges, slabs = (slab.edges[1:-1], slab.slabs) if isinstance(slab, material.Bins) else ((), [slab])
    lengths = [(material.interaction_lengths(one), material.radiation_lengths(one)) for one in slabs]
    return np.array(edges), np.array(lengths)


def _layer(layer: layout.Layer, length: Floats) -> Sheet:
    """The modules of a layer, spread over it."""
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
class Fates:
    """Particles that interact, decay or convert, one entry each."""

    #: Which of the particles.
    index: Integers
    #: mm, shape (3, fates), and ns.
    place: Floats
    time: Floats
    decays: npt.NDArray[np.bool_]


def fates(
    particles: Particles,
    ends: Ends,
    hits: SimulatedHits,
    made_here: int,
    tracker: Tracker,
    random: np.random.Generator,
) -> Fates:
    """Where the particles that ``ends`` knows interact, decay or convert.

    Particles from number ``made_here`` on were made by the detector: of them, short-lived ones decay too.
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
        lives = pdg == kind
        lives[:made_here] &= kind in LIFETIMES
        lifetime[lives] = flight
    budget, age = random.exponential(size=(2, len(chosen)))
    with np.errstate(invalid="ignore"):
        age = age * lifetime[chosen] / LIGHT * energy[chosen] / mass[chosen]

    owner, place, time = _points(particles, ends, hits, chosen)
    segments = np.flatnonzero(owner[1:] == owner[:-1])
    begin, end = place[:, segments], place[:, segments + 1]
    segment, part, length = tracker.crossed(begin, end)
    of = owner[segments[segment]]
    depth = np.cumsum(np.where(photon[chosen][of], length[:, 1], length[:, 0]) * strength[chosen][of])
    first = np.searchsorted(of, np.arange(len(chosen)))
    depth -= np.append(0.0, depth)[first][of]
    beyond = np.flatnonzero(depth > budget[of])
    interacts, at = np.unique(of[beyond], return_index=True)
    at = beyond[at]

    when = np.full(len(chosen), np.inf)
    when[interacts] = _between(time, segments[segment[at]], part[at])
    birth, death = time[np.searchsorted(owner, np.arange(len(chosen)))], np.zeros(len(chosen))
    np.maximum.at(death, owner, time)
    decays = (birth + age < np.minimum(when, death)) & np.isfinite(age)
    when[decays] = (birth + age)[decays]
    happens = np.flatnonzero(np.isfinite(when))
    # The point before: times rise within each particle.
    before = np.searchsorted(owner, happens) + _earlier(owner, time, when, happens)
    width = time[before + 1] - time[before]
    share = np.clip((when[happens] - time[before]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    where = _between(place, before, share)
    return Fates(chosen[happens], where, when[happens], decays[happens])


def _conversions(energy: Floats) -> Floats:
    """Conversions of photons of ``energy`` (GeV) in a radiation length, after Y. Tsai for aluminium.

    Rev. Mod. Phys. 46 (1974) 815, as fitted by FATRAS from 0.1 to 100 GeV.
    """
    missing: Floats = 0.0769040 * np.maximum(energy, 0.05) ** -0.607682 - 0.00701612
    return 7 / 9 * (1 - np.maximum(missing, 0.0))


def _pairs(energy: Floats, random: np.random.Generator) -> Floats:
    """Electrons and positrons of photons of ``energy`` along z, rows as of :meth:`hadrons.Pool.products`.

    The density of an electron's share x is 1 - 4/3 x (1 - x), complete screening; that of angles is Tsai's,
    as in Geant4's physics reference manual (gamma conversion).
    """
    even = random.uniform(-1.0, 1.0, len(energy))
    share = 0.5 + 0.5 * np.where(random.random(len(energy)) < 6 / 7, even, np.cbrt(even))
    energies = np.maximum(np.concatenate([share, 1 - share]) * np.tile(energy, 2), 1.001 * _ELECTRON)
    tail = np.where(random.random(len(energy)) < 0.25, 1.6, 1.6 / 3)
    angle = np.minimum(np.tile(random.gamma(2.0, tail), 2) * _ELECTRON / energies, 1.0)
    charge = np.repeat([-1.0, 1.0], len(energy))
    size = np.sqrt(energies**2 - _ELECTRON**2)
    momenta = (-charge * size * np.sin(angle), 0 * size, size * np.cos(angle))
    return np.stack([-11 * charge, *momenta, energies, np.full(len(size), _ELECTRON), charge], axis=1)


def _turned(local: Floats, direction: Floats, angle: Floats) -> Floats:
    """Vectors turned by an angle around z, and then z into a direction; all have shape (3, vectors)."""
    x, y, z = direction
    across = np.hypot(x, y)
    cosine, sine = np.where(across > 0, (x, y) / np.where(across > 0, across, 1.0), [[1.0], [0.0]])
    out = local[0] * np.cos(angle) - local[1] * np.sin(angle)
    side = local[0] * np.sin(angle) + local[1] * np.cos(angle)
    turned: Floats = (
        out * (cosine * z, sine * z, -across) + side * (-sine, cosine, 0 * x) + local[2] * direction
    )
    return turned


def _points(
    particles: Particles, ends: Ends, hits: SimulatedHits, chosen: Integers
) -> tuple[Integers, Floats, Floats]:
    """The ways of the chosen particles: vertex, hits and end of each, with places of shape (3, points)."""
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
    ways = np.stack(
        [
            np.concatenate([first[chosen], middle[seen], end[chosen]]).astype(np.float64)
            for first, middle, end in zip(vertex, crossed, last, strict=True)
        ]
    )
    order = np.lexsort((ways[0], rank, owner))
    return owner[order], ways[1:, order], ways[0, order]


def _between(values: Floats, before: Integers, share: Floats) -> Floats:
    found: Floats = values[..., before] * (1 - share) + values[..., before + 1] * share
    return found


def _earlier(owner: Integers, time: Floats, when: Floats, happens: Integers) -> Integers:
    """How many points of each particle, but the first and the last, are earlier than what happens to it."""
    counts = np.bincount(owner[time < when[owner]], minlength=len(when))[happens]
    points = np.bincount(owner, minlength=len(when))[happens]
    return np.clip(counts - 1, 0, points - 2)


def cut(ends: Ends, hits: SimulatedHits, particles: Particles, found: Fates) -> tuple[Ends, SimulatedHits]:
    """Ends and hits without what comes after interactions, decays and conversions."""
    until = np.full(len(particles) + 1, np.inf)
    until[found.index + 1] = found.time
    changed = {name: getattr(ends, name).copy() for name in ("fate", "x", "y", "z", "time")}
    for column, value in zip(changed.values(), (ENDED, *found.place, found.time), strict=True):
        column[found.index] = value
    return replace(ends, **changed), hits.chosen(hits.time <= until[hits.particle_id.astype(np.int64)])


def products(
    particles: Particles, found: Fates, field: float, pool: Pool, random: np.random.Generator
) -> Particles:
    """What the particles make; ids follow those of ``particles``. ``field`` in tesla."""
    momentum = np.stack([getattr(particles, name)[found.index] for name in ("px", "py", "pz")]).astype(
        np.float64
    )
    energy = particles.energy[found.index]
    passed = found.time - particles.time[found.index]
    turn = -particles.charge[found.index] * field * 1e-6 * LIGHT**2 * passed / energy
    momentum[0], momentum[1] = (
        momentum[0] * np.cos(turn) - momentum[1] * np.sin(turn),
        momentum[0] * np.sin(turn) + momentum[1] * np.cos(turn),
    )
    size = np.linalg.norm(momentum, axis=0)
    photon = particles.pdg_id[found.index] == PHOTON
    others, photons = np.flatnonzero(~photon), np.flatnonzero(photon)
    made = [
        pool.products(kind, p, mass, decays, random)
        for kind, p, mass, decays in zip(
            particles.pdg_id[found.index[others]].tolist(),
            size[others].tolist(),
            particles.mass[found.index[others]].tolist(),
            found.decays[others].tolist(),
            strict=True,
        )
    ]
    of = np.concatenate([np.repeat(others, [len(one) for one in made]), photons, photons])
    rows = np.concatenate([np.empty((0, 7)), *made, _pairs(size[photons], random)])
    angle = random.uniform(-np.pi, np.pi, len(size))
    pdg_id, _, _, _, e, mass, charge = rows.T
    px, py, pz = _turned(rows.T[1:4], (momentum / size)[:, of], angle[of])
    parents = found.index[of]
    vx, vy, vz = found.place[:, of]
    columns = {"mass": mass, "energy": e, "charge": charge, "px": px, "py": py, "pz": pz}
    columns |= {"vx": vx, "vy": vy, "vz": vz, "time": found.time[of]}
    return Particles(
        particle_id=len(particles) + np.arange(1, len(of) + 1, dtype=np.uint64),
        pdg_id=pdg_id.astype(np.int64),
        primary=np.zeros(len(of), np.bool_),
        vertex_primary=particles.vertex_primary[parents],
        parent_id=particles.particle_id[parents].astype(np.int64),
        **{name: column.astype(np.float32) for name, column in columns.items()},
    )
