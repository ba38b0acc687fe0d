"""Simulation of particles in the tracker with FATRAS, the fast simulation of ACTS.

FATRAS propagates charged particles, with energy loss, multiple scattering and bremsstrahlung. Hadronic
interactions, decays and conversions are added by :mod:`interactions`; neutral particles fly straight.

Particles that curl are followed for half a turn, and then fly on in the calorimeters. To start FATRAS again,
up to eleven times, changed little: most cross at most one more module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import acts
import acts.arrow
import acts.examples
import acts.fatras
import numpy as np
import numpy.typing as npt

from collidium.physics.constants import SPEED_OF_LIGHT
from collidium_plugins.acts_pipeline import seeds
from collidium_plugins.acts_pipeline.detector import geometry, hadrons, interactions, layout
from collidium_plugins.acts_pipeline.detector.algorithms import Algorithms, columns
from collidium_plugins.acts_pipeline.detector.geometry import ARROW, GEV, LOG_LEVEL, NANOSECOND, Detector
from collidium_plugins.acts_pipeline.events import (
    ENDED,
    LEFT,
    NOT_SIMULATED,
    Ends,
    GeneratedEvent,
    Particles,
    SimulatedEvent,
    SimulatedHits,
)

#: Minimum momentum of simulated particles, GeV.
MIN_MOMENTUM: Final = 0.05
#: Maximum |η| of simulated particles: the tracker covers less.
MAX_ABS_ETA: Final = 4.0

#: Generations of particles that are simulated: generated ones, their products, and so on.
_GENERATIONS: Final = 4
_NEUTRINOS: Final = (12, 14, 16)
_UNITS: Final = np.array([1.0, 1.0, 1.0, NANOSECOND, GEV, GEV, GEV, GEV])


Integers = npt.NDArray[np.int64]


class Simulation:
    """Simulates events in the tracker."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._material = interactions.TrackerMaterial(interactions.sheets(detector.slabs))
        self._pool = hadrons.ReactionPool()
        fatras = acts.examples.FatrasSimulation(
            level=LOG_LEVEL,
            inputParticles="generated",
            outputParticles="particles",
            outputSimHits="hits",
            randomNumbers=acts.examples.RandomNumbers(seed=0),
            trackingGeometry=detector.tracking_geometry,
            magneticField=detector.field,
            pMin=MIN_MOMENTUM * GEV,
            emPhotonConversion=False,  # FATRAS has none in the first 2.6% of a radiation length
        )
        hits = ARROW.ArrowSimHitOutputConverter(
            level=LOG_LEVEL, inputSimHits="hits", inputParticles="particles", outputTable="hit_table"
        )
        self._algorithms = Algorithms(
            [fatras, hits],
            inputs={"generated": acts.examples.SimParticleContainer},
            outputs={
                "particles": acts.examples.SimParticleContainer,
                "hits": acts.examples.SimHitContainer,
                "hit_table": acts.arrow.ArrowTable,
            },
        )

    def simulate(self, event: GeneratedEvent, seed: int) -> SimulatedEvent:
        """Simulate an event; random numbers depend on seed and event id. Raises StageFailed."""
        particles, ends = event.particles, Ends.none(0)
        crossings = []
        chosen = is_simulated(particles)
        for generation in range(_GENERATIONS):
            random = seeds.for_acts("fatras", seed, event.event_id, generation)
            charged = particles.charge != 0
            result = self._algorithms.run(
                event.event_id, random, generated=_particle_container(particles, chosen & charged)
            )
            simulated = list(result["particles"])
            ids, radiated = _particles_of(simulated, len(particles))
            particles = Particles.concatenate([particles, radiated])
            reached = self._ends(simulated, ids, particles, np.flatnonzero(chosen & ~charged))
            hits = self._crossings(columns(result["hit_table"]), _directions(result["hits"]), ids)
            numbers = seeds.generator("interactions", seed, event.event_id, generation)
            vertices = interactions.secondary_vertices(
                particles, reached, hits, len(event.particles), self._material, numbers
            )
            reached, hits = interactions.truncated(reached, hits, particles, vertices)
            ends = ends.updated(reached)
            crossings.append(hits)
            if not len(vertices.index):
                break
            made = interactions.products(particles, vertices, self._detector.field_tesla, self._pool, numbers)
            chosen = np.append(np.zeros(len(particles), np.bool_), is_simulated(made))
            particles = Particles.concatenate([particles, made])
        return SimulatedEvent(
            event.event_id,
            particles,
            ends.updated(Ends.none(len(particles))),
            SimulatedHits.concatenate(crossings).sorted(),
        )

    def _crossings(
        self,
        hits: dict[str, npt.NDArray[Any]],
        directions: npt.NDArray[np.float32],
        ids: npt.NDArray[np.uint64],
    ) -> SimulatedHits:
        """Return hits projected onto their modules: ACTS gives positions in single precision."""
        module = geometry.identifier(hits["volume_id"], hits["layer_id"], hits["surface_id"])
        place = np.searchsorted(self._detector.modules, module)
        position = np.stack([hits["true_x"], hits["true_y"], hits["true_z"]], axis=1).astype(np.float64)
        normal = self._detector.normals[place]
        height = np.einsum("ij,ij->i", position - self._detector.centres[place], normal)
        x, y, z = (position - height[:, None] * normal).T
        return SimulatedHits(
            x=x,
            y=y,
            z=z,
            dx=directions[0],
            dy=directions[1],
            dz=directions[2],
            time=(hits["time"] / NANOSECOND).astype(np.float32),
            particle_id=ids[hits["particle_id"].astype(np.int64)],
            volume_id=hits["volume_id"],
            layer_id=hits["layer_id"],
            surface_id=hits["surface_id"],
        )

    def _ends(
        self, simulated: Sequence[Any], ids: npt.NDArray[np.uint64], particles: Particles, neutral: Integers
    ) -> Ends:
        """Return the final states of particles that FATRAS simulated, and of neutral particles.

        Particles above the minimum momentum have left the tracker or curl back.
        """
        rows = np.zeros((len(particles), 8), np.float32)
        fate = np.full(len(particles), NOT_SIMULATED, np.uint8)
        if simulated:
            places = ids.astype(np.int64) - 1
            rows[places] = np.array([_four_vectors(particle.finalState) for particle in simulated]) / _UNITS
            fast = np.linalg.norm(rows[places, 4:7], axis=1) > MIN_MOMENTUM
            fate[places] = np.where(fast, LEFT, ENDED)
        rows[neutral], fate[neutral] = _straight(particles, neutral), LEFT
        x, y, z, time, px, py, pz, energy = np.ascontiguousarray(rows.T)
        return Ends(fate, x, y, z, time, px, py, pz, energy)


def _straight(particles: Particles, which: Integers) -> npt.NDArray[np.float64]:
    """Return position (mm), time (ns), momentum and energy (GeV) where straight lines leave the tracker."""
    names = ("vx", "vy", "vz", "px", "py", "pz", "energy", "time")
    x, y, z, px, py, pz, energy, time = (getattr(particles, name)[which].astype(np.float64) for name in names)
    with np.errstate(divide="ignore"):
        across, along = px**2 + py**2, x * px + y * py
        to_side = (
            np.sqrt(np.maximum(along**2 + across * (layout.SOLENOID_INSIDE**2 - x**2 - y**2), 0.0)) - along
        ) / across
        to_end = (np.copysign(layout.HALF_LENGTH, pz) - z) / pz
    path = np.maximum(np.minimum(to_side, to_end), 0.0)  # over momentum
    position = (x + path * px, y + path * py, z + path * pz)
    return np.stack([*position, time + path * energy / SPEED_OF_LIGHT, px, py, pz, energy], axis=1)


def is_simulated(particles: Particles) -> npt.NDArray[np.bool_]:
    """Return the mask of particles to simulate: undecayed, visible, within the cuts on momentum and |η|."""
    decayed = np.isin(particles.particle_id, particles.parent_id[particles.parent_id > 0].astype(np.uint64))
    visible = ~np.isin(np.abs(particles.pdg_id), _NEUTRINOS)
    components = np.array([particles.px, particles.py, particles.pz], np.float64)
    momentum = np.sqrt(np.square(components).sum(axis=0))
    into_tracker = np.abs(components[2]) < np.tanh(MAX_ABS_ETA) * momentum
    chosen: npt.NDArray[np.bool_] = visible & ~decayed & into_tracker & (momentum > MIN_MOMENTUM)
    return chosen


def _particle_container(particles: Particles, chosen: npt.NDArray[np.bool_]) -> Any:
    """Return the chosen particles as an ACTS container; barcodes have the vertex and the particle id."""
    places = np.flatnonzero(chosen)
    places = places[np.argsort(particles.vertex_primary[places], kind="stable")]
    names = ("particle_id", "vertex_primary", "pdg_id", "charge", "mass", "px", "py", "pz", "vx", "vy", "vz")
    lists = [getattr(particles, name)[places].tolist() for name in names]
    times = (particles.time[places] * NANOSECOND).tolist()
    container = acts.examples.SimParticleContainer()
    for particle_id, vertex, kind, charge, mass, px, py, pz, x, y, z, time in zip(*lists, times, strict=True):
        barcode = acts.fatras.Barcode()
        barcode.vertexPrimary, barcode.particle = vertex, particle_id
        particle = acts.examples.SimParticle(barcode, acts.PdgParticle(kind), charge, mass * GEV)
        momentum = (px * px + py * py + pz * pz) ** 0.5
        particle.fourPosition = acts.Vector4(x, y, z, time)
        particle.direction = acts.Vector3(px / momentum, py / momentum, pz / momentum)
        particle.absoluteMomentum = momentum * GEV
        container.insert(particle)
    return container


def _directions(hits: Any) -> npt.NDArray[np.float32]:
    """Return unit vectors of flight, shape (3, hits)."""
    momenta = [hit.momentum4Before for hit in hits]
    vectors = np.array([(p[0], p[1], p[2]) for p in momenta]).reshape(-1, 3)
    directions = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return np.ascontiguousarray(directions.T)


def _four_vectors(state: Any) -> tuple[float, ...]:
    """Return position, time, momentum and energy in ACTS units."""
    position, momentum = state.fourPosition, state.fourMomentum
    return (
        *(position[0], position[1], position[2], position[3]),
        *(momentum[0], momentum[1], momentum[2], momentum[3]),
    )


#: Order of :func:`_particle_row`.
_COLUMNS: Final = ("mass", "energy", "charge", "px", "py", "pz", "vx", "vy", "vz", "time")


def _particles_of(simulated: Sequence[Any], before: int) -> tuple[npt.NDArray[np.uint64], Particles]:
    """Return the ids of particles from FATRAS, and those among them that it made: bremsstrahlung photons.

    ACTS gives a photon the barcode of its electron with a higher generation. Photons get the ids that follow
    ``before``.
    """
    barcodes = [particle.particleId for particle in simulated]
    fields = [(one.particle, one.vertexPrimary, one.generation) for one in barcodes]
    ids, vertex, generation = np.array(fields, np.uint64).reshape(-1, 3).T.copy()
    places = np.flatnonzero(generation > 0)
    parents = ids[places]
    ids[places] = before + np.arange(1, len(places) + 1, dtype=np.uint64)
    new = [simulated[place] for place in places.tolist()]
    rows = np.array([_particle_row(particle) for particle in new], np.float32).reshape(-1, 10)
    return ids, Particles(
        particle_id=ids[places],
        pdg_id=np.array([int(particle.pdg) for particle in new], np.int64),
        **dict(zip(_COLUMNS, rows.T, strict=True)),
        primary=np.zeros(len(new), np.bool_),
        vertex_primary=vertex[places].astype(np.uint16),
        parent_id=parents.astype(np.int64),
    )


def _particle_row(particle: Any) -> tuple[float, ...]:
    position, momentum = particle.fourPosition, particle.fourMomentum
    return (
        particle.mass / GEV,
        particle.energy / GEV,
        particle.charge,
        *(momentum[axis] / GEV for axis in range(3)),
        *(position[axis] for axis in range(3)),
        position[3] / NANOSECOND,
    )
