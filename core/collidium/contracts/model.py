"""What a submitted model of a task may read and what it returns.

A task that takes models returns a :class:`ModelInterface`; the platform reads the columns, runs the model
in a sandbox and makes predictions of its outputs (``collidium.inference``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy.typing as npt

from collidium.contracts.task import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """An input that the platform computes from public columns: ``features/NAME`` of a manifest.

    Parameters
    ----------
    description : str
        What it holds, with units.
    shape : tuple of int
        Shape of one row: ``(22,)`` for 22 numbers of a jet.
    tables : tuple of str
        Tables that it is computed of.
    compute : callable
        From tables of a block of events to an array of shape ``(rows, *shape)``.
    """

    description: str
    shape: tuple[int, ...]
    tables: tuple[str, ...]
    compute: Callable[[Tables], npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInterface:
    """Inputs and outputs of models of a task.

    Parameters
    ----------
    inputs : mapping of str to sequence of str
        Columns of each table that models may read; all of them public. A missing column of the dataset is an
        error of the run.
    outputs : tuple of str
        Columns of predictions that a model returns, one row for each row of ``rows``.
    rows : str, optional
        The table whose rows are predicted; None: one row per event. The features have the same rows.
    key : tuple of (str, str), optional
        The predictions' column that names a row within its event, and the column of ``rows`` that it is;
        where the dataset has no such column, rows are numbered from 0.
    features : mapping of str to Feature
    postprocess : tuple of str
        Steps after the graph that the platform offers: ``"components"`` makes ``track_id`` of edges.
    ids : frozenset of str
        Outputs that number things within an event, from 0, -1 for none. The platform renumbers them, so
        that they differ between events.
    measured : mapping of str to {"parameters", "seconds"}
        Columns that the platform fills in: the size of the model, and the measured time of an event.
    """

    inputs: Mapping[str, Sequence[str]]
    outputs: tuple[str, ...]
    rows: str | None = None
    key: tuple[str, str] | None = None
    features: Mapping[str, Feature] = field(default_factory=dict)
    postprocess: tuple[Literal["components"], ...] = ()
    ids: frozenset[str] = frozenset()
    measured: Mapping[str, Literal["parameters", "seconds"]] = field(default_factory=dict)
