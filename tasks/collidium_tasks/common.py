"""Shared by tasks: files of trained baselines, and problems of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Problem, Tables, UnusableTruth

#: Rows shown for each kind of problem.
EXAMPLES: Final = 5


class Read(Protocol):
    """Reads tables of a training set of ``collidium seed`` in blocks: of the first events, or of all."""

    def __call__(
        self, dataset: str, tables: Sequence[str], events: int | None = None
    ) -> Iterable[Tables]: ...


def labels(tables: Tables, name: str, column: str) -> Any:
    """Return the column of training labels, a list for each event. Raises UnusableTruth if it is withheld."""
    table = tables[name]
    if column not in table.column_names or table[column].null_count:
        raise UnusableTruth(f"table {name} has no {column} to learn from: it may be withheld")
    return table[column]


def can_learn() -> bool:
    """Whether scikit-learn (extra ``baselines``) is installed, which trees and forest need."""
    return find_spec("sklearn") is not None


def not_learned(baseline: str) -> dict[str, str]:
    """Return the extra that a baseline needs, by its name; empty if the extra is installed."""
    return {} if can_learn() else {baseline: "collidium[baselines]"}


def shipped(module: str, name: str) -> bytes:
    """Return the content of the file ``name`` next to a module, which is given by its full name."""
    return (files(module.rpartition(".")[0]) / name).read_bytes()


def shipped_model(module: str, files_of: Mapping[str, str], baseline: str) -> dict[str, bytes]:
    """Return the file of a trained baseline next to a module, by file name; empty for other baselines."""
    name = files_of.get(baseline)
    return {name: shipped(module, name)} if name else {}


def rows_problem(
    predictions: pa.Table,
    rows: npt.NDArray[np.bool_],
    code: str,
    column: str,
    detail: str,
    shown: list[str],
) -> Problem:
    """Return the problem of the masked rows; the columns ``shown`` of the first rows are examples."""
    examples = predictions.select(shown).take(np.flatnonzero(rows)[:EXAMPLES]).to_pylist()
    count = int(np.count_nonzero(rows))
    return Problem(code, detail, column, examples[0]["event_id"], count, tuple(examples))
