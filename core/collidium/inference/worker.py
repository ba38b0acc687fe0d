"""The sandboxed process: confines itself, then loads and runs a model. A script that is never imported.

It communicates over one socket, and has no access to network, files and other processes. Errors of
onnxruntime become codes, with a text for public events only.
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
    BatchMessage,
    Closed,
    Code,
    Done,
    Failed,
    Load,
    Loaded,
    MessageChannel,
    ModelRefused,
    OutputSpec,
    Predict,
    Predicted,
    Ready,
    Sent,
    Started,
)
from collidium.runtime.confinement import confine

#: The parent is trusted, and limits its requests.
_LARGEST_REQUEST: Final = 2**40
_LONGEST_DETAIL: Final = 500
#: Parameters of post-processing by components: cut and minimum number of hits.
_COMPONENTS_PARAMETERS: Final = 2

#: :func:`collidium.inference.components.tracks`.
Tracks = Callable[..., Any]


def main() -> NoReturn:
    """Confine this process, then serve its parent: ``worker.py PARENT CORE MEMORY [components]``."""
    parent, core, memory, *steps = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Files cannot be read later.
    tracks = import_module("collidium.inference.components").tracks if steps else None
    gc.disable()  # a collection between calls would count as hidden work
    channel = MessageChannel(socket.socket(fileno=0))
    channel.send(Started(confine(int(parent), int(core), int(memory))))
    try:
        _serve(channel, tracks)
    except Closed:
        os._exit(0)


def _serve(channel: MessageChannel, tracks: Tracks | None) -> NoReturn:
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


def _predict(channel: MessageChannel, model: _Model, batches: Sequence[BatchMessage]) -> None:
    """Run batches between two messages, at which the parent reads the CPU time of this process."""
    decoded = [(batch.rows, [sent.array() for sent in batch.arrays]) for batch in batches]
    channel.send(Ready())
    channel.receive(None, largest=1)
    outputs, cpu, wall = [], [], []
    # The process has one thread, and RLIMIT_CPU makes the CPU time of the process inexact from within.
    for rows, arrays in decoded:
        cpu_began, wall_began = time.thread_time_ns(), time.perf_counter_ns()
        outputs.append(model.run(rows, arrays))
        cpu.append(time.thread_time_ns() - cpu_began)
        wall.append(time.perf_counter_ns() - wall_began)
    channel.send(Done(cpu, wall))
    channel.receive(None, largest=1)
    channel.send(Predicted([[Sent.of(array) for array in of] for of in outputs]))


class _Model:
    """A model in onnxruntime. Raises ModelRefused."""

    def __init__(self, load: Load, tracks: Tracks | None, channel: MessageChannel) -> None:
        self._load = load
        self._tracks = tracks
        self._inputs = [given.name for given in load.inputs]
        self._outputs = [output.name for output in load.outputs]
        if load.edges:
            self._outputs += [load.edges.edges, load.edges.scores]
        try:
            parsed = graph.parse(load.content)
            facts = self._facts(parsed)
            channel.send(facts)  # before onnxruntime reads the file, and could be taken over by it
            if not load.counts_only:
                self._session = onnxruntime.InferenceSession(
                    parsed.SerializeToString(), _options(), ["CPUExecutionProvider"]
                )
        except (ModelRefused, Closed):
            raise
        except Exception as error:  # onnxruntime has its own classes
            raise _refusal(Code.LOAD_FAILED, error) from None

    def _facts(self, parsed: Any) -> Loaded:
        found = graph.summarize(parsed)
        if not self._load.counts_only:
            graph.compare(parsed.graph, self._load.inputs, self._outputs, found)
        found.raise_if_any()
        return Loaded(
            n_params=found.parameters + (_COMPONENTS_PARAMETERS if self._load.edges else 0),
            numbers=found.numbers,
            number_bytes=found.number_bytes,
            nodes=found.operators.total(),
            opset=found.opset,
            operators=dict(found.operators),
        )

    def run(self, rows: int, arrays: Sequence[Any]) -> list[Any]:
        """Run one batch; each output has ``rows`` rows."""
        try:
            made = self._session.run(self._outputs, dict(zip(self._inputs, arrays, strict=True)))
            outputs = [
                _checked(spec, array, rows) for spec, array in zip(self._load.outputs, made, strict=False)
            ]
            if self._tracks is not None:
                outputs.append(self._tracks(self._load.edges, *made[-2:], rows))
        except ModelRefused:
            raise
        except Exception as error:  # onnxruntime has its own classes
            raise _refusal(Code.RUN_FAILED, error) from None
        return outputs


def _checked(spec: OutputSpec, array: Any, rows: int) -> Any:
    """Check type and shape of an output, and return it with the shape (rows, columns)."""
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
