"""Runs ACTS algorithms on one event in memory, without ACTS's sequencer.

The sequencer seeds random numbers by the event's position in the run, and prints. Here the caller passes the
seed, and inputs and outputs are objects in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import acts
import acts.examples
import acts.fatras
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium_plugins.acts_pipeline.detector.geometry import ARROW, LOG_LEVEL, Detector
from collidium_plugins.acts_pipeline.order import StageError


class Algorithms:
    """A sequence of algorithms that exchange data through a whiteboard."""

    def __init__(
        self, algorithms: Sequence[Any], *, inputs: Mapping[str, type], outputs: Mapping[str, type]
    ) -> None:
        """``inputs`` and ``outputs`` are the types of whiteboard entries, by name."""
        self._algorithms = list(algorithms)
        # Handles keep a pointer to their algorithm, which must outlive them.
        self._owner = acts.examples.IAlgorithm("Collidium", LOG_LEVEL)
        self._inputs = self._handles(acts.examples.WriteDataHandle, inputs)
        self._outputs = self._handles(acts.examples.ReadDataHandle, outputs)

    def run(self, event_id: int, random: int, **inputs: Any) -> dict[str, Any]:
        """Return the outputs for one event; ``random``, of 64 bits, seeds all random numbers.

        ACTS takes ownership of the inputs. Raises StageFailed with the event and the algorithm.
        """
        whiteboard = acts.examples.WhiteBoard(LOG_LEVEL)
        context = acts.examples.AlgorithmContext(0, random, whiteboard, 0)
        for name, value in inputs.items():
            self._inputs[name](context, value)
        for algorithm in self._algorithms:
            try:
                code = algorithm.execute(context)
            except (RuntimeError, ValueError, IndexError) as error:  # translated from C++ exceptions
                raise StageError(f"event {event_id}: {algorithm.name()} of ACTS failed: {error}") from error
            if code != acts.examples.ProcessCode.SUCCESS:
                raise StageError(f"event {event_id}: {algorithm.name()} of ACTS failed without a message")
        return {name: handle(whiteboard) for name, handle in self._outputs.items()}

    def _handles(self, kind: Any, types: Mapping[str, type]) -> dict[str, Any]:
        handles = {name: kind(self._owner, type_, name) for name, type_ in types.items()}
        for name, handle in handles.items():
            handle.initialize(name)
        return handles


def hit_container(
    detector: Detector,
    modules: npt.NDArray[np.uint64],
    positions: npt.NDArray[np.float64],
    directions: npt.NDArray[Any],
) -> Any:
    """Return hits as an ACTS container, in their order, with unit momenta and without a particle.

    Parameters
    ----------
    detector : Detector
    modules : numpy.ndarray of uint64, shape (hits,)
        Geometry ids, sorted: the container orders hits by module.
    positions : numpy.ndarray of float64, shape (hits, 3)
        On the planes of the modules, to 0.1 µm, in mm.
    directions : numpy.ndarray, shape (hits, 3)
        Unit vectors of flight.
    """
    hit, vector, no_particle = acts.examples.SimHit, acts.Vector4, acts.fatras.Barcode()
    container = acts.examples.SimHitContainer()
    rows = zip(modules.tolist(), positions.tolist(), directions.tolist(), strict=True)
    for module, (x, y, z), (dx, dy, dz) in rows:
        momentum = vector(dx, dy, dz, 1.0)
        container.insert(hit(detector.ids[module], no_particle, vector(x, y, z, 0.0), momentum, momentum))
    return container


def track_converter() -> Any:
    """Return the algorithm that converts ``tracks`` to the arrow table ``track_table``."""
    return ARROW.ArrowTrackOutputConverter(
        level=LOG_LEVEL,
        inputTracks="tracks",
        inputMeasurementSimHitsMap="measurement_hits",
        outputTable="track_table",
    )


def columns(table: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of an arrow table of ACTS for one event, as arrays.

    Lists of lists are flattened; ``<name>.lengths`` has the lengths of the inner lists.
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
