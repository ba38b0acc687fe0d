"""Adds the table ``jets`` to a dataset that has none: whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.datasets import layout
from collidium.datasets.reading.dataset import parquet_files
from collidium.datasets.reading.shards import EventTable, blocks_of
from collidium.datasets.writing import ShardWriter
from collidium.errors import Conflict, UnusableDataset
from collidium.files.held import work_directory
from collidium_plugins.jet_finder.table import BOTTOM, CHARM, LIGHT, SCHEMA, jets

_TABLE: Final = "jets"
_SOURCE: Final = "calo_hits"
#: Working directory; hidden files are not part of a dataset.
_WORK: Final = ".jets"
_NAMES: Final = {"b": BOTTOM, "c": CHARM, "light": LIGHT}

#: Called with the events that are done, and all there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Added:
    """The table that was made."""

    #: A folder of shards, or a file.
    path: str
    events: int
    jets: int
    #: Number of jets of each flavour; None without flavours.
    flavours: dict[str, int] | None


def add_jets(
    directory: Path, config: str | None, *, flavours: bool = True, progress: Progress | None = None
) -> Added:
    """Make the jets of a config below ``directory``; blocks, in memory bounded by blocks of events.

    Raises Conflict if the config has jets, and UnusableDataset if tables or columns are missing, or if
    ``flavours`` are wanted and ``particles`` has no hadrons that determine them.
    """
    paths = sorted(parquet_files(directory))
    chosen = layout.choose(paths, config)
    if _TABLE in layout.configs(paths)[chosen]:
        raise Conflict(f"{chosen or directory} already has a table {_TABLE}: remove it to create it again")
    names = (_SOURCE, "particles") if flavours else (_SOURCE,)
    shards = {name: [directory / path for path in layout.shards(paths, name, chosen)] for name in names}
    tables = {name: EventTable(name, files) for name, files in shards.items()}
    events = _events_of(tables)
    target, events_per_shard = _target(shards[_SOURCE], chosen)
    counts = np.zeros(256, np.int64)
    with work_directory(directory / _WORK) as scratch:
        made, size = scratch / _TABLE, events_per_shard or max(len(events), 1)
        with ShardWriter(made, "train", SCHEMA, events_per_shard=size) as writer:
            done = 0
            for _, rows in blocks_of(tables, events):
                block = jets(rows[_SOURCE], rows.get("particles"))
                writer.write(block)
                counts += _flavours(block)
                done += block.num_rows
                if progress:
                    progress(done, len(events))
            if flavours and counts.any() and counts[LIGHT] == counts.sum():
                raise UnusableDataset(
                    "table particles has no b or c hadron in any jet: many datasets list only particles that "
                    "reach the detector, which do not determine flavours; --without-flavour omits them"
                )
        (made if events_per_shard else writer.paths[0]).replace(target)
    named = {name: int(counts[flavour]) for name, flavour in _NAMES.items()} if flavours else None
    return Added(str(target.relative_to(directory)), len(events), int(counts.sum()), named)


def _target(shards: list[Path], config: str) -> tuple[Path, int | None]:
    """Where readers expect the table, given the shards of its source: a folder of shards, or one file."""
    folder = shards[0].parent
    if config and folder.name == f"{config}_{_SOURCE}":
        events = max(pq.read_metadata(shard).num_rows for shard in shards)
        return folder.with_name(f"{config}_{_TABLE}"), max(events, 1)
    return folder / f"{_TABLE}.parquet", None


def _events_of(tables: dict[str, EventTable]) -> npt.NDArray[np.int64]:
    source = tables[_SOURCE].event_ids
    for name, table in tables.items():
        if not np.array_equal(table.event_ids, source):
            raise UnusableDataset(f"tables {name} and {_SOURCE} have different events")
    return source


def _flavours(block: pa.Table) -> npt.NDArray[np.int64]:
    """How many jets have each flavour; those without are counted as light."""
    flavour = np.asarray(pc.list_flatten(block.column("flavour")))
    counts = np.bincount(flavour, minlength=256)
    total = int(np.asarray(pc.list_value_length(block.column("pt"))).sum())
    counts[LIGHT] += total - len(flavour)
    return counts
