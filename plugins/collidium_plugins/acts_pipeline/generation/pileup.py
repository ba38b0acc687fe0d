"""Pileup: the number of additional collisions in an event, their vertices, and the pool they are drawn from.

The number of collisions is Poisson distributed. As in production it includes all soft collisions, also the
23% elastic ones, which leave nothing in the detector. Positions and times of vertices are Gaussian and
independent, with the standard deviations of production: 55.5 mm along the beams, 12.5 µm across, 185 ps.
ATLAS expects 50 mm and 175 ps at the HL-LHC (High-Granularity Timing Detector, technical design report,
CERN-LHCC-2020-007). The hard scatter has the same distribution.

Collisions are drawn from a pool of :data:`POOL` distinct ones. Each is rotated by a random angle around the
beams, and with probability one half by 180° around a transverse axis; proton-proton collisions are symmetric
under both. The multiplicity and shape of a collision recur on average ``events * pileup / POOL`` times in a
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium_plugins.acts_pipeline import seeds
from collidium_plugins.acts_pipeline.generation.pythia import Pythia
from collidium_plugins.acts_pipeline.generation.record import TYPES, Interaction, keep_visible

#: Distinct collisions in the pool of a seed.
POOL: Final = 20_000
#: Standard deviations of vertices in x and y, in z (mm), and in time (ns).
_SIGMA_XY: Final = 0.0125
_SIGMA_Z: Final = 55.5
_SIGMA_TIME: Final = 0.185

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """Positions (mm) and times (ns) of interactions, shape (interactions,)."""

    x: Floats
    y: Floats
    z: Floats
    time: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Pileup:
    """The pileup collisions of an event, one entry each."""

    #: Numbers of collisions in the pool.
    members: npt.NDArray[np.int64]
    #: Angle of the rotation around the beams, rad.
    angle: Floats
    #: Whether the collision is rotated by 180° around the x axis before.
    flipped: npt.NDArray[np.bool_]
    vertices: Vertices


def draw(channel: str, pileup: int, seed: int, event_id: int) -> Pileup:
    """Draw the pileup of an event."""
    random = seeds.generator("pileup", channel, pileup, seed, event_id)
    count = int(random.poisson(pileup))
    return Pileup(
        members=random.integers(0, POOL, count),
        angle=random.uniform(-np.pi, np.pi, count),
        flipped=random.random(count) < 0.5,
        vertices=vertices(random, count),
    )


def vertices(random: np.random.Generator, count: int) -> Vertices:
    """Draw the vertices of ``count`` interactions of a bunch crossing."""
    return Vertices(
        x=random.normal(0, _SIGMA_XY, count),
        y=random.normal(0, _SIGMA_XY, count),
        z=random.normal(0, _SIGMA_Z, count),
        time=random.normal(0, _SIGMA_TIME, count),
    )


def members(channel: str, pileup: int, seed: int, events: Iterable[int]) -> npt.NDArray[np.int64]:
    """Return the sorted numbers of the collisions that these events need."""
    needed = np.zeros(POOL, bool)
    for event_id in events:
        needed[draw(channel, pileup, seed, event_id).members] = True
    return np.flatnonzero(needed)


def collisions(pythia: Pythia, seed: int, members: Iterable[int]) -> pa.Table:
    """Generate collisions; return a table with one row per collision: its number and lists of particles."""
    numbers = list(members)
    made = [pythia.generate(seeds.for_pythia("pool", seed, number), keep_visible) for number in numbers]
    offsets = pa.array(np.cumsum([0, *map(len, made)]), pa.int32())
    particles = Interaction.concatenate([Interaction.from_rows([]), *made])
    lists = {
        name: pa.ListArray.from_arrays(offsets, pa.array(_as_bytes(getattr(particles, name))))
        for name in TYPES
    }
    return pa.table({"member": pa.array(numbers, pa.int64()), **lists})


class PileupPool:
    """Collisions in memory-mapped files of tables of :func:`collisions`."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._batches = [batch for path in paths for batch in _mapped(path)]
        #: Batch and row of each collision.
        self._rows: dict[int, tuple[int, int]] = {}
        self._offsets: list[npt.NDArray[np.int32]] = []
        self._values: list[dict[str, npt.NDArray[Any]]] = []
        for number, batch in enumerate(self._batches):
            for row, member in enumerate(batch.column("member").to_numpy().tolist()):
                self._rows[member] = (number, row)
            lists = {name: cast("pa.ListArray[Any]", batch.column(name)) for name in TYPES}
            self._offsets.append(lists["pdg_id"].offsets.to_numpy())
            self._values.append({name: column.values.to_numpy() for name, column in lists.items()})

    def take(self, members: npt.NDArray[np.int64]) -> tuple[Interaction, npt.NDArray[np.int64]]:
        """Return the particles of these collisions, and the number of particles of each."""
        slices = []
        for member in members.tolist():
            number, row = self._rows[member]
            first, end = self._offsets[number][row : row + 2].tolist()
            slices.append((number, first, end))
        columns = {
            name: np.concatenate(
                [
                    np.empty(0, kind),
                    *(self._values[number][name][first:end] for number, first, end in slices),
                ],
                dtype=kind,
                casting="unsafe",
            )
            for name, kind in TYPES.items()
        }
        counts = np.array([end - first for _, first, end in slices], np.int64)
        return Interaction(**columns), counts


def _as_bytes(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert booleans to bytes: arrow stores booleans as bits, which NumPy cannot map."""
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def _mapped(path: Path) -> list[pa.RecordBatch]:
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]
