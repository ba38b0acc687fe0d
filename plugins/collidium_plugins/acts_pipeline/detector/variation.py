"""Systematic variations of the tracker: inefficiency, noise, misalignment, resolution, field and material.

Field and material are varied in the simulation. Reconstruction always assumes the nominal detector.

Variations of hits come before digitisation, so that tracks are fitted without knowing of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import acts
import numpy as np
import numpy.typing as npt

from collidium.order import Variation
from collidium_plugins.acts_pipeline import seeds
from collidium_plugins.acts_pipeline.detector import geometry, layout, material
from collidium_plugins.acts_pipeline.detector.digitisation import READOUTS
from collidium_plugins.acts_pipeline.detector.geometry import Detector
from collidium_plugins.acts_pipeline.events import Doubles, SimulatedHits

#: Times of noise hits are uniform within a bunch crossing, ns.
_CROSSING: Final = 25.0


def varied_detector(variation: Variation) -> Detector:
    """Build the detector to simulate, with varied field and material."""
    return geometry.build(
        field=variation.field * layout.FIELD_TESLA, slabs=material.slabs(variation.material)
    )


class HitVariation:
    """Applies a variation to the hits of events."""

    def __init__(self, detector: Detector, variation: Variation) -> None:
        self._detector, self._variation = detector, variation

    def apply(self, true: SimulatedHits, seed: int, event_id: int) -> tuple[SimulatedHits, Doubles]:
        """Return the crossings to measure and their varied positions.

        Parameters
        ----------
        true : SimulatedHits
            The crossings of the event.
        seed, event_id : int
            Seed the random numbers; displacements of modules depend only on ``seed``.

        Returns
        -------
        tuple of SimulatedHits and ndarray of float, shape (hits, 3)
            Crossings without lost ones and with noise, whose ``particle_id`` is 0, in the order of modules;
            and positions to digitise, mm.
        """
        vary = self._variation
        if vary.inefficiency:
            random = seeds.generator("inefficiency", seed, event_id)
            true = true.select(random.random(len(true)) >= vary.inefficiency)
        if vary.noise:
            true = self._with_noise(true, seeds.generator("noise", seed, event_id))
        positions = np.stack([true.x, true.y, true.z], axis=1)
        modules = self._modules(true) if vary.misalign or vary.smear > 1 else np.empty(0, np.int64)
        if vary.misalign:
            positions -= self._displacements(seed)[modules]
        if vary.smear > 1:
            random = seeds.generator("smear", seed, event_id)
            widths = self._planes.resolution[modules] * np.sqrt(vary.smear**2 - 1)
            positions += self._planes.to_global(modules, random.normal(size=widths.shape) * widths)
        return true, positions

    def _with_noise(self, true: SimulatedHits, random: np.random.Generator) -> SimulatedHits:
        planes, detector = self._planes, self._detector
        module = np.repeat(
            np.arange(len(detector.modules)), random.poisson(self._variation.noise * planes.channels)
        )
        x, y, z = (detector.centres[module] + planes.to_global(module, planes.uniform(module, random))).T
        flight = detector.normals[module].T.astype(np.float32)
        volume, layer, surface = geometry.parts(detector.modules[module])
        noise = SimulatedHits(
            x=x,
            y=y,
            z=z,
            dx=flight[0],
            dy=flight[1],
            dz=flight[2],
            time=random.uniform(0, _CROSSING, len(module)).astype(np.float32),
            particle_id=np.zeros(len(module), np.uint64),
            volume_id=volume.astype(np.uint8),
            layer_id=layer.astype(np.uint16),
            surface_id=surface.astype(np.uint32),
        )
        return SimulatedHits.concatenate([true, noise]).sorted()

    def _modules(self, hits: SimulatedHits) -> npt.NDArray[np.int64]:
        return np.searchsorted(
            self._detector.modules, geometry.identifier(hits.volume_id, hits.layer_id, hits.surface_id)
        )

    @cached_property
    def _planes(self) -> _Planes:
        return _Planes.of(self._detector)

    def _displacements(self, seed: int) -> Doubles:
        """Displacement of each module within its plane, mm; the same in all events."""
        random = seeds.generator("misalign", seed)
        offsets = random.normal(0, self._variation.misalign / 1000, (len(self._detector.modules), 2))
        return self._planes.to_global(np.arange(len(offsets)), offsets)


def _half_lengths(bounds: Any) -> tuple[float, float, float]:
    """Along the first axis at both ends of the second, and along the second, mm."""
    values = bounds.values()
    if isinstance(bounds, acts.TrapezoidBounds):
        return values[0], values[1], values[2]
    return values[2], values[2], values[3]


@dataclass(frozen=True, slots=True, eq=False)
class _Planes:
    """Local axes, sizes, channels and resolutions of modules, in the order of the detector."""

    #: Unit vectors in the plane, shape (modules, 2, 3).
    axes: Doubles
    #: Half lengths along the first axis at both ends of the second, and along the second, mm.
    lower: Doubles
    upper: Doubles
    height: Doubles
    #: Number of channels.
    channels: Doubles
    #: Resolution along both axes, mm, shape (modules, 2).
    resolution: Doubles

    @classmethod
    def of(cls, detector: Detector) -> _Planes:
        planes = [detector.planes[detector.ids[value]] for value in detector.modules.tolist()]
        lower, upper, height = np.array([_half_lengths(plane.bounds) for plane in planes]).T
        made = [READOUTS[volume] for volume in geometry.parts(detector.modules)[0].tolist()]
        sizes = [(lower + upper), 2 * height]
        channels = np.ones(len(planes))
        for axis, size in enumerate(sizes):
            pitch = np.array([(*readout.pitches, np.inf)[axis] for readout in made])
            channels *= np.where(np.isinf(pitch), 1, size / pitch)
        # Resolution of clusters of one channel; long strips do not measure the second coordinate.
        resolution = np.array([[*(rms[0] for rms in readout.resolutions), 0.0][:2] for readout in made])
        axes = np.stack([detector.axes, np.cross(detector.normals, detector.axes)], axis=1)
        return cls(axes, lower, upper, height, channels, resolution)

    def to_global(self, modules: npt.NDArray[np.int64], offsets: Doubles) -> Doubles:
        """Transform local offsets, shape (offsets, 2), to vectors in space, shape (offsets, 3)."""
        vectors: Doubles = np.einsum("ij,ijk->ik", offsets, self.axes[modules])
        return vectors

    def uniform(self, modules: npt.NDArray[np.int64], random: np.random.Generator) -> Doubles:
        """Draw points on the modules, as local offsets from their centres."""
        across, along = random.uniform(-1, 1, (2, len(modules)))
        lower, upper = self.lower[modules], self.upper[modules]
        half = lower + (upper - lower) * (along + 1) / 2
        return np.stack([across * half, along * self.height[modules]], axis=1)
