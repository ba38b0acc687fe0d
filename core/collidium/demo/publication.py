"""Publishes the five events on a hub as a benchmark's host would: the eval events without their truth."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets import hub_client

#: Columns that tell which particle made something.
TRUTH_COLUMNS = frozenset({"particle_id", "majority_particle_id"})
#: Tables that are an answer as a whole: the particles themselves, and finished tracks with their hits.
TRUTH_TABLES = frozenset({"particles", "tracks"})

CARD_HEADER = """\
---
license: cc-by-4.0
pretty_name: Five real ttbar events in the Open Data Detector
tags: [collidium, particle-physics]
---
"""


def publish(
    events: Path, repo: str, config: str, evaluation: EventRange, *, endpoint: str, token: str
) -> str:
    """Make dataset ``repo`` on the hub from a directory of tables; returns the commit.

    The layout is ``data/<config>_<table>/train-00000-of-00001.parquet``.
    """
    hub_client.prepare()
    from huggingface_hub import CommitOperationAdd, HfApi

    files = {"README.md": (CARD_HEADER + (events.parent / "README.md").read_text()).encode()}
    for path in sorted(events.glob("*.parquet")):
        table = without_truth(path.stem, pq.read_table(path), evaluation)
        files[f"data/{config}_{path.stem}/train-00000-of-00001.parquet"] = _parquet(table)
    api = HfApi(endpoint=endpoint, token=token)
    api.create_repo(repo, repo_type="dataset")
    commit = api.create_commit(
        repo,
        [CommitOperationAdd(path, content) for path, content in files.items()],
        repo_type="dataset",
        commit_message="Five real events",
    )
    return str(commit.oid)


def without_truth(name: str, table: pa.Table, evaluation: EventRange) -> pa.Table:
    """The table as the public may have it: nothing in the eval events tells which hits belong together."""
    events = np.asarray(table.column("event_id"))
    held_out = pa.array((events >= evaluation.start) & (events < evaluation.stop))
    open_rows = table.filter(pc.invert(held_out))
    if name in TRUTH_TABLES:
        return open_rows
    closed_rows = table.filter(held_out)
    for index, field in enumerate(table.schema):
        if field.name in TRUTH_COLUMNS:
            nothing = pa.nulls(closed_rows.num_rows, field.type)
            closed_rows = closed_rows.set_column(index, field, nothing)
    return pa.concat_tables([open_rows, closed_rows])


def _parquet(table: pa.Table) -> bytes:
    buffer = BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
