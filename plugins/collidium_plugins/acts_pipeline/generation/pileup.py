"""Pileup: how many other protons collide in an event, which collisions of the pool they are, and where.

The number is Poisson distributed around the pileup, of all soft collisions as in production: inelastic ones
and the 23% that are elastic, of which the detector sees nothing. Places and times are Gaussian and
independent, with the spreads that the production of the hosted datasets uses: 55.5 mm along the beams,
12.5 µm across, 185 ps.
ATLAS expects 50 mm and 175 ps of the HL-LHC (High-Granularity Timing Detector, technical design report,
CERN-LHCC-2020-007). The hard scatter is spread alike.

A collision is taken from a pool of :data:`POOL` distinct ones. Each time it is turned by another angle around
the beams, and half of the time end for end (by 180 degrees around an axis across the beams), which is as
good as new: the protons are alike and nothing else distinguishes directions. What stays is that the same
multiplicity and shape come back, on average ``events * pileup / POOL`` times in a run.
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
from collidium_plugins.acts_pipeline.generation.record import TYPES, Interaction, seen

#: Distinct collisions that pileup is drawn from, for each seed.
POOL: Final = 20_000
#: Standard deviations of an interaction's place, mm, and time, ns.
_ACROSS: Final = 0.0125
_ALONG: Final = 55.5
_TIME: Final = 0.185

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where interactions take place, mm, and when, ns; shape (interactions,)."""

    x: Floats
    y: Floats
    z: Floats
    time: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Pileup:
    """The pileup interactions of an event, one entry each."""

    #: Which collisions of the pool.
    members: npt.NDArray[np.int64]
    #: Turned around the beams by so many radians.
    angle: Floats
    #: Turned end for end.
    turned: npt.NDArray[np.bool_]
    places: Places


def draw(channel: str, pileup: int, seed: int, event_id: int) -> Pileup:
    """The pileup of an event."""
    random = seeds.generator("pileup", channel, pileup, seed, event_id)
    count = int(random.poisson(pileup))
    return Pileup(
        members=random.integers(0, POOL, count),
        angle=random.uniform(-np.pi, np.pi, count),
        turned=random.random(count) < 0.5,
        places=places(random, count),
    )


def places(random: np.random.Generator, count: int) -> Places:
    """Where and when ``count`` interactions of a bunch crossing take place."""
    return Places(
        x=random.normal(0, _ACROSS, count),
        y=random.normal(0, _ACROSS, count),
        z=random.normal(0, _ALONG, count),
        time=random.normal(0, _TIME, count),
    )


def members(channel: str, pileup: int, seed: int, events: Iterable[int]) -> npt.NDArray[np.int64]:
    """The collisions of the pool that these events need, in order."""
    needed = np.zeros(POOL, bool)
    for event_id in events:
        needed[draw(channel, pileup, seed, event_id).members] = True
    return np.flatnonzero(needed)


def collisions(pythia: Pythia, seed: int, members: Iterable[int]) -> pa.Table:
    """One row per collision: its number, how many particles it has, and lists of their properties."""
    numbers = list(members)
    made = [pythia.generate(seeds.for_pythia("pool", seed, number), seen) for number in numbers]
    lengths = [len(one) for one in made]
    offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
    joined = Interaction.join([Interaction.from_rows([]), *made])
    lists = {
        name: pa.ListArray.from_arrays(offsets, pa.array(_stored(getattr(joined, name)))) for name in TYPES
    }
    return pa.table({"member": pa.array(numbers, pa.int64()), **lists})


class Pool:
    """Collisions in files of :func:`collisions`, mapped into memory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._batches = [batch for path in paths for batch in _mapped(path)]
        self._at: dict[int, tuple[int, int]] = {}
        self._offsets: list[npt.NDArray[np.int32]] = []
        self._values: list[dict[str, npt.NDArray[Any]]] = []
        for place, batch in enumerate(self._batches):
            for row, member in enumerate(batch.column("member").to_numpy().tolist()):
                self._at[member] = (place, row)
            lists = {name: cast("pa.ListArray[Any]", batch.column(name)) for name in TYPES}
            self._offsets.append(lists["pdg_id"].offsets.to_numpy())
            self._values.append({name: column.values.to_numpy() for name, column in lists.items()})

    def take(self, members: npt.NDArray[np.int64]) -> tuple[Interaction, npt.NDArray[np.int64]]:
        """The particles of these collisions one after the other, and how many each has."""
        slices = []
        for member in members.tolist():
            place, row = self._at[member]
            first, end = self._offsets[place][row : row + 2].tolist()
            slices.append((place, first, end))
        none = Interaction.from_rows([])
        columns = {
            name: np.concatenate(
                [
                    getattr(none, name),
                    *(self._values[place][name][first:end] for place, first, end in slices),
                ],
                dtype=kind,
                casting="unsafe",
            )
            for name, kind in TYPES.items()
        }
        counts = np.array([end - first for _, first, end in slices], np.int64)
        return Interaction(**columns), counts


def _stored(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Truth values as bytes: arrow packs them into bits, which numpy cannot map."""
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def _mapped(path: Path) -> list[pa.RecordBatch]:
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]
