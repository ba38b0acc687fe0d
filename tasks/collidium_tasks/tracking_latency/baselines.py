"""The reconstructions of the tracking task, each event timed while it is reconstructed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Reconstruction, Tables
from collidium_tasks.tracking_latency.card import LEAST_SECONDS


@dataclass(frozen=True, slots=True)
class Timed:
    """A reconstruction that says how long it took: by its nature, not the same every time."""

    reconstruct: Reconstruction
    clock: Callable[[], float] = perf_counter

    def __call__(self, tables: Tables) -> pa.Table:
        events = len(tables["tracker_hits"])
        empty = with_seconds(self.reconstruct({name: table.slice(0, 0) for name, table in tables.items()}), 0)
        return pa.concat_tables([empty, *(self._event(tables, number) for number in range(events))])

    def _event(self, tables: Tables, number: int) -> pa.Table:
        one = {name: table.slice(number, 1) for name, table in tables.items()}
        begin = self.clock()
        predictions = self.reconstruct(one)
        return with_seconds(predictions, max(self.clock() - begin, LEAST_SECONDS))


def with_seconds(predictions: pa.Table, seconds: float) -> pa.Table:
    """Predictions of the tracking task as those of this one."""
    return predictions.append_column("seconds", pa.array(np.full(predictions.num_rows, float(seconds))))
