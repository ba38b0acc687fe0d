"""The sandboxed process: gives up what it can, then reads a model and runs it. A script, never imported.

It reads from one socket and writes to it; everything else is out of reach: no network, no files, no other
process. Whatever onnxruntime raises becomes a code here, with a text on public events alone.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import numpy as np
import onnxruntime

from collidium.inference import graph
from collidium.inference.messages import (
    Batch,
    Channel,
    Closed,
    Code,
    Done,
    Failed,
    Load,
    Loaded,
    ModelRefused,
    OutputSpec,
    Predict,
    Predicted,
    Ready,
    Sent,
    Started,
)
from collidium.runtime.confinement import confine

#: Requests are the parent's, who bounds them.
_LARGEST_REQUEST: Final = 2**40
_LONGEST_DETAIL: Final = 500
#: The cost of a track finder by components: its cut and the minimum number of hits.
_CUTS: Final = 2

#: Makes tracks of edges and scores: the manifest's part, both arrays, and the number of hits.
Tracks = Callable[..., Any]


def main() -> NoReturn:
    """Confine this process, then serve its parent: ``worker.py PARENT CORE MEMORY [components]``."""
    parent, core, memory, *steps = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is not imported now cannot be read later.
    tracks = import_module("collidium.inference.components").tracks if steps else None
    gc.disable()  # nothing has cycles, and a collection between calls would be hidden work
    channel = Channel(socket.socket(fileno=0))
    channel.send(Started(confine(int(parent), int(core), int(memory))))
    try:
        _serve(channel, tracks)
    except Closed:
        os._exit(0)


def _serve(channel: Channel, tracks: Tracks | None) -> NoReturn:
    load: Load = channel.receive(Load, largest=_LARGEST_REQUEST)
    try:
        model = _Model(load, tracks, channel)
        channel.send(Ready())
        while True:
            request: Predict = channel.receive(Predict, largest=_LARGEST_REQUEST)
            _predict(channel, model, request.batches)
    except ModelRefused as error:
        channel.send(Failed(error.code.value, error.reason[:_LONGEST_DETAIL] if load.details else ""))
        os._exit(0)


def _predict(channel: Channel, model: _Model, batches: Sequence[Batch]) -> None:
    """Run batches between two messages: the parent reads this process's clock when they arrive."""
    decoded = [(batch.rows, [sent.array() for sent in batch.arrays]) for batch in batches]
    channel.send(Ready())
    channel.receive(None, largest=1)
    outputs, cpu, wall = [], [], []
    # Of this thread, as it can have no other: RLIMIT_CPU makes the clock of the process inexact from within.
    for rows, arrays in decoded:
        cpu_began, wall_began = time.thread_time_ns(), time.perf_counter_ns()
        outputs.append(model.run(rows, arrays))
        cpu.append(time.thread_time_ns() - cpu_began)
        wall.append(time.perf_counter_ns() - wall_began)
    channel.send(Done(cpu, wall))
    channel.receive(None, largest=1)
    channel.send(Predicted([[Sent.of(array) for array in of] for of in outputs]))


class _Model:
    """A model that onnxruntime has loaded. Raises ModelRefused."""

    def __init__(self, load: Load, tracks: Tracks | None, channel: Channel) -> None:
        self._load = load
        self._tracks = tracks
        self._inputs = [given.name for given in load.inputs]
        self._outputs = [output.name for output in load.outputs]
        if load.edges:
            self._outputs += [load.edges.edges, load.edges.scores]
        try:
            parsed = graph.parse(load.content)
            facts = self._facts(parsed)
            channel.send(facts)  # before onnxruntime reads the file: whatever that does, the size is known
            if not load.counts_only:
                self._session = onnxruntime.InferenceSession(
                    parsed.SerializeToString(), _options(), ["CPUExecutionProvider"]
                )
        except (ModelRefused, Closed):
            raise
        except Exception as error:  # onnxruntime has classes of its own
            raise _refusal(Code.LOAD_FAILED, error) from None

    def _facts(self, parsed: Any) -> Loaded:
        found = graph.summarize(parsed)
        if not self._load.counts_only:
            graph.compare(parsed.graph, self._load.inputs, self._outputs, found)
        found.refuse()
        return Loaded(
            n_params=found.parameters + (_CUTS if self._load.edges else 0),
            numbers=found.numbers,
            number_bytes=found.number_bytes,
            nodes=found.operators.total(),
            opset=found.opset,
            operators=dict(found.operators),
        )

    def run(self, rows: int, arrays: Sequence[Any]) -> list[Any]:
        """The outputs of one batch, each with as many rows."""
        try:
            made = self._session.run(self._outputs, dict(zip(self._inputs, arrays, strict=True)))
            outputs = [
                _checked(spec, array, rows) for spec, array in zip(self._load.outputs, made, strict=False)
            ]
            if self._tracks is not None:
                outputs.append(self._tracks(self._load.edges, *made[-2:], rows))
        except ModelRefused:
            raise
        except Exception as error:
            raise _refusal(Code.RUN_FAILED, error) from None
        return outputs


def _checked(spec: OutputSpec, array: Any, rows: int) -> Any:
    """An output of the shape (rows,) or (rows, columns)."""
    kind = array.dtype.name if isinstance(array, np.ndarray) else type(array).__name__
    if not kind.startswith(("int", "uint") if spec.is_integer else "float"):
        raise ModelRefused(Code.OUTPUT_TYPE, f"{spec.name} is {kind}")
    shape = (rows, spec.columns)
    if array.shape != shape and (spec.columns > 1 or array.shape != (rows,)):
        raise ModelRefused(Code.OUTPUT_SHAPE, f"{spec.name} has {array.shape}, not {shape}")
    return array.reshape(shape)


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _refusal(code: Code, error: Exception) -> ModelRefused:
    text = str(error)
    is_memory = isinstance(error, MemoryError) or "bad_alloc" in text or "Failed to allocate" in text
    return ModelRefused(Code.MEMORY if is_memory else code, text)


if __name__ == "__main__":
    main()
