"""Training of baselines: whether scikit-learn is installed, and the training data."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


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
