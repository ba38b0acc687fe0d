"""The pool of inelastic collisions that pileup is drawn from, as files that all processes map into memory.

Which collision a number stands for depends on the seed alone, so that only those are generated that the
events of a run need, in any order and by any number of processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium_plugins.acts_pipeline import seeds
from collidium_plugins.acts_pipeline.generation.interaction import TYPES, Interaction
from collidium_plugins.acts_pipeline.generation.pythia import Pythia
from collidium_plugins.acts_pipeline.generation.record import seen


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
