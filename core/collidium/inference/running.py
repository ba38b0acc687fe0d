"""Runs a model on events: batches of its inputs in, predictions of the task out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from msgspec import Struct

from collidium.contracts.task import Tables, Task
from collidium.inference.manifest import Manifest
from collidium.inference.sandbox import Facts, Limits


class Model(Struct, frozen=True):
    """A submitted model: its file and its manifest."""

    content: bytes
    manifest: Manifest


def check(model: Model, task: Task, *, limits: Limits, details: bool = True) -> Facts:
    """Parse, check, count and load a model in a fresh sandbox.

    Raises
    ------
    ModelRefused
        With its code, and with ``details`` what was wrong.
    """
    raise NotImplementedError


def predict(
    model: Model, task: Task, blocks: Iterable[Tables], *, limits: Limits, details: bool = True
) -> Iterator[pa.Table]:
    """Run a model in one fresh sandbox and yield the predictions of each block of events.

    ``blocks`` are tables of the dataset with the columns that the manifest names, as
    :meth:`~collidium.datasets.Dataset.read` yields them. Predictions have the columns of the task's card, in
    the order of the rows; ``n_params`` is counted, ``seconds`` is the CPU time of the event in this run.

    Raises
    ------
    ModelRefused
        As :func:`check`, and for outputs of a wrong shape or type, not finite or out of bounds.
    """
    raise NotImplementedError
