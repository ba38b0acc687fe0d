"""Checks models, and runs them on events to get predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from collidium.contracts.task import Card, EventRange, Tables, Task
from collidium.datasets import Dataset
from collidium.errors import InvalidInput
from collidium.inference.batching import BATCH_BYTES, Inputs, Outputs
from collidium.inference.manifest import Manifest, interface_of
from collidium.inference.messages import MAX_CALLS, InputSpec, ModelRefused, OutputSpec
from collidium.inference.sandbox import (
    CallBatch,
    Facts,
    Interface,
    Sandbox,
    SandboxLimits,
    SandboxOutcome,
    opened,
)
from collidium.runtime.progress import Progress

#: Minimum measured time of a prediction in seconds.
_SHORTEST: Final = 1e-9


class Model(Struct, frozen=True):
    """A submitted model: its ONNX file and its manifest."""

    content: bytes
    manifest: Manifest


def check(model: Model, task: Task, *, limits: SandboxLimits | None = None, details: bool = True) -> Facts:
    """Parse, check, count and load a model in a fresh sandbox.

    Parameters
    ----------
    model, task
        The model, and the task that its manifest names.
    limits
        Limits of the sandbox; default: those of :class:`~collidium.inference.sandbox.SandboxLimits`.
    details
        Whether errors have a text; must be False for hidden events.

    Raises
    ------
    ModelRefused
        With a code, and a text if ``details``.
    """
    with open_model(model, task, limits=limits, details=details) as sandbox:
        return sandbox.facts


def count(content: bytes, *, limits: SandboxLimits | None = None) -> Facts:
    """Count a file's parameters in a fresh sandbox, without a manifest. Raises ModelRefused."""
    with opened(content, None, limits or SandboxLimits(), details=True) as sandbox:
        return sandbox.facts


def predict(
    model: Model,
    task: Task,
    blocks: Iterable[Tables],
    *,
    limits: SandboxLimits | None = None,
    details: bool = True,
) -> Iterator[pa.Table]:
    """Run a model in a fresh sandbox and yield the predictions of each block of events.

    Parameters
    ----------
    model, task, limits, details
        As for :func:`check`.
    blocks
        The tables of :func:`tables_of`, as :meth:`~collidium.datasets.Dataset.read` yields them.

    Yields
    ------
    pyarrow.Table
        The columns of the task's card, in the order of the dataset. Measured columns contain the number of
        parameters, or the CPU seconds of the event in this run.

    Raises
    ------
    ModelRefused
        As :func:`check`, and if an output has the wrong shape or type, is not finite or out of bounds.
    """
    interface = interface_of(task)
    with open_model(model, task, limits=limits, details=details) as sandbox:
        for tables in blocks:
            inputs = Inputs(model.manifest, interface, tables)
            outcomes = list(run_batches(sandbox, (batch for _, batch in inputs.batches())))
            # Batches are single events if the task measures their time.
            seconds = np.array([max(outcome.cpu_seconds, _SHORTEST) for outcome in outcomes])
            measured = {"parameters": sandbox.facts.n_params, "seconds": seconds}
            outputs = Outputs(inputs, model.manifest, interface, task.card, measured)
            try:
                yield outputs.table(tables, [outcome.outputs for outcome in outcomes])
            except ModelRefused as error:
                raise error if details else ModelRefused(error.code) from None


def write_predictions(
    model: Model,
    task: Task,
    dataset: Dataset,
    events: EventRange,
    path: Path,
    *,
    limits: SandboxLimits | None = None,
    details: bool = True,
    progress: Progress | None = None,
) -> int:
    """Run a model on events of a dataset, and write its predictions to a parquet file; returns their number.

    Parameters
    ----------
    model, task, limits, details
        As for :func:`predict`.
    dataset, events
        The events.
    path
        The file, which is deleted after an error.
    progress
        Called with the number of events done and the total.

    Raises
    ------
    ModelRefused, UnusableDataset
        As :func:`predict`, and :meth:`~collidium.datasets.Dataset.read`.
    """
    rows = done = 0
    blocks = (tables for _, tables in dataset.read(tables_of(model, task), events))
    with ExitStack() as stack:
        stack.callback(path.unlink, missing_ok=True)
        writer: pq.ParquetWriter | None = None
        for table in predict(model, task, blocks, limits=limits, details=details):
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema))
            writer.write_table(table)
            rows += table.num_rows
            done = int(table.column("event_id")[-1].as_py()) + 1 - events.start if table.num_rows else done
            if progress:
                progress(done, len(events))
        if writer is not None:
            writer.close()
        stack.pop_all()
    return rows


def tables_of(model: Model, task: Task) -> tuple[str, ...]:
    """The tables that the model reads."""
    interface = interface_of(task)
    named = {interface.rows}
    for given in model.manifest.inputs.values():
        named.update(interface.features[given.feature].tables if given.feature else (given.table,))
    return tuple(name for name in interface.inputs if name in named)


def open_model(
    model: Model,
    task: Task,
    *,
    limits: SandboxLimits | None = None,
    details: bool = True,
    core: int | None = None,
) -> AbstractContextManager[Sandbox]:
    """Load a model in a sandbox, as :func:`~collidium.inference.sandbox.opened`."""
    manifest = model.manifest
    if manifest.task != task.card.name:
        raise InvalidInput(f"the manifest is of task {manifest.task}, not {task.card.name}")
    features = interface_of(task).features
    specs = Interface(
        inputs=[
            InputSpec(name, given.dtype, given.tail(features)) for name, given in manifest.inputs.items()
        ],
        outputs=[
            OutputSpec(name, len(columns), _is_integer(columns, task.card))
            for name, columns in manifest.outputs.items()
        ],
        edges=manifest.postprocess,
    )
    return opened(model.content, specs, limits or SandboxLimits(), details=details, core=core)


def run_batches(sandbox: Sandbox, batches: Iterable[CallBatch]) -> Iterator[SandboxOutcome]:
    """Run batches, with several small ones per message."""
    waiting: list[CallBatch] = []
    size = 0
    for batch in batches:
        if waiting and (size + batch.nbytes > BATCH_BYTES or len(waiting) == MAX_CALLS):
            yield from sandbox.predict(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.nbytes
    if waiting:
        yield from sandbox.predict(waiting)


def _is_integer(columns: Sequence[str], card: Card) -> bool:
    return any(column.name in columns and column.kind == "integer" for column in card.columns)
