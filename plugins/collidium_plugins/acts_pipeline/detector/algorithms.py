"""Runs algorithms of ACTS on one event in memory, without its sequencer.

The sequencer would number events from the start of the run, and print. Here the random numbers of an event
depend on the number passed in, and inputs and outputs are objects of this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import acts.examples
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium_plugins.acts_pipeline.detector.geometry import LOG_LEVEL
from collidium_plugins.acts_pipeline.order import StageFailed


class Algorithms:
    """Algorithms that read from and write to one whiteboard per event, in their order."""

    def __init__(
        self, algorithms: Sequence[Any], *, inputs: Mapping[str, type], outputs: Mapping[str, type]
    ) -> None:
        """``inputs`` and ``outputs``: names and types."""
        self._algorithms = list(algorithms)
        # Handles know their algorithm by its address: it has to live as long as they do.
        self._owner = acts.examples.IAlgorithm("Collidium", LOG_LEVEL)
        handles = acts.examples.WriteDataHandle, acts.examples.ReadDataHandle
        self._inputs, self._outputs = (
            {name: self._handle(handle, name, type_) for name, type_ in named.items()}
            for handle, named in zip(handles, (inputs, outputs), strict=True)
        )

    def run(self, event_id: int, random: int, **inputs: Any) -> dict[str, Any]:
        """The outputs for one event; ``random``, 64 bits, seeds all random numbers.

        ACTS takes ownership of the inputs. Raises StageFailed, naming the event and the algorithm.
        """
        whiteboard = acts.examples.WhiteBoard(LOG_LEVEL)
        context = acts.examples.AlgorithmContext(0, random, whiteboard, 0)
        for name, value in inputs.items():
            self._inputs[name](context, value)
        for algorithm in self._algorithms:
            try:
                code = algorithm.execute(context)
            except (RuntimeError, ValueError, IndexError) as error:  # what exceptions of C++ become
                raise StageFailed(f"event {event_id}: {algorithm.name()} of ACTS failed: {error}") from error
            if code != acts.examples.ProcessCode.SUCCESS:
                raise StageFailed(f"event {event_id}: {algorithm.name()} of ACTS failed without a message")
        return {name: handle(whiteboard) for name, handle in self._outputs.items()}

    def _handle(self, kind: Any, name: str, type_: type) -> Any:
        handle = kind(self._owner, type_, name)
        handle.initialize(name)
        return handle


def columns(table: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of one event's table of ACTS, as arrays.

    Of a column of lists of lists, the entries are joined, and ``<name>.lengths`` says how long each list is.
    """
    batch = pa.record_batch(table)
    found: dict[str, npt.NDArray[Any]] = {}
    for name in batch.schema.names:
        entries = pc.list_flatten(batch.column(name))
        if pa.types.is_list(entries.type):
            found[f"{name}.lengths"] = pc.list_value_length(entries).to_numpy(zero_copy_only=False)
            entries = pc.list_flatten(entries)
        found[name] = entries.to_numpy(zero_copy_only=False)
    return found
