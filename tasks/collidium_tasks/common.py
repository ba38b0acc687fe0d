"""What tasks share: training data of baselines, and problems with rows."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import Problem

#: Rows shown for each kind of problem.
EXAMPLES: Final = 5


def can_learn() -> bool:
    """Whether the extra ``baselines`` is installed."""
    return find_spec("sklearn") is not None


def shipped(module: str, name: str) -> bytes:
    """The file ``name`` next to a module, given by its full name."""
    return (files(module.rpartition(".")[0]) / name).read_bytes()


def whole_table(directory: Path, table: str) -> pa.Table:
    """One table of all events of a dataset in the hosted layout."""
    shards = sorted(directory.glob(f"data/*_{table}/*.parquet"))
    return pa.concat_tables([pq.read_table(shard) for shard in shards])


def rows_problem(
    predictions: pa.Table,
    rows: npt.NDArray[np.bool_],
    code: str,
    column: str,
    detail: str,
    shown: list[str],
) -> Problem:
    """The problem of these rows, at least one, with the columns ``shown`` of the first few as examples."""
    examples = predictions.select(shown).take(np.flatnonzero(rows)[:EXAMPLES]).to_pylist()
    count = int(np.count_nonzero(rows))
    return Problem(code, detail, column, examples[0]["event_id"], count, tuple(examples))
