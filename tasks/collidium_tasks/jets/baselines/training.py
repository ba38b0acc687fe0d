"""Writes the training jets of the trees.

    collidium simulate --pipeline acts --channel ttbar --events 1200 --seed 271828 --output training
    python -m collidium_tasks.jets.baselines.training training

Events to be scored have another seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.contracts.task import Tables
from collidium_tasks.common import whole_table
from collidium_tasks.jets.baselines.features import NAMES, features
from collidium_tasks.jets.baselines.trees import TRAINING


def training_table(tables: Tables) -> pa.Table:
    """Features and flavours of the jets of tables ``jets`` and ``tracks``."""
    made = features(tables)
    columns = {name: pa.array(made[:, place]) for place, name in enumerate(NAMES)}
    return pa.table({**columns, "flavour": pc.list_flatten(tables["jets"].column("flavour"))})


def main(directory: Path) -> None:
    """Write the jets of a dataset in the hosted layout next to this module."""
    tables = {name: whole_table(directory, name) for name in ("jets", "tracks")}
    pq.write_table(training_table(tables), Path(__file__).with_name(TRAINING), compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
