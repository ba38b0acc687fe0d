"""What a pipeline left is a dataset: every table whole, with exactly the events that were ordered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets.manifest import DatasetFile, sha256_of
from collidium.datasets.reading.dataset import refuse_missing
from collidium.datasets.reading.shards import EventTable
from collidium.datasets.writing import folder, shard_name
from collidium.errors import UnusableDataset

#: ``<table>.parquet`` or ``<table>-00000-of-00004.parquet``.
_NAME: Final = re.compile(
    r"(?P<table>[a-z][a-z0-9_]{0,63})(-(?P<number>\d{1,9})-of-(?P<count>\d{1,9}))?\.parquet"
)


def check_output(
    paths: Iterable[Path], root: Path, config: str, events: EventRange
) -> list[tuple[Path, DatasetFile]]:
    """The files, each with what it is in a dataset of the hosted layout; blocks.

    Raises UnusableDataset unless all are tables in files of their own below ``root``, and every table holds
    each of the events once and no other.
    """
    files = []
    for table, shards in sorted(_tables(dict.fromkeys(paths), root).items()):
        _check_table(table, shards, events)
        for number, shard in enumerate(shards):
            path = f"{folder(config, table)}/{shard_name(number, len(shards))}"
            files.append((shard, _describe(shard, path)))
    return files


def _tables(paths: Iterable[Path], root: Path) -> dict[str, list[Path]]:
    """The shards of each table in the order of their numbers; raises unless all are there."""
    found: dict[str, list[tuple[int, int, Path]]] = {}
    root = root.resolve()
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise UnusableDataset(f"the output has a file {path.name!r}, which is no table of a dataset")
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(root):
            raise UnusableDataset(f"the output file {path.name} is no file of the job's own")
        shard = (int(name["number"] or 0), int(name["count"] or 1), path)
        found.setdefault(name["table"], []).append(shard)
    for table, shards in found.items():
        shards.sort()
        if [(number, count) for number, count, _ in shards] != [(n, len(shards)) for n in range(len(shards))]:
            told = ", ".join(path.name for *_, path in shards[:5])
            raise UnusableDataset(
                f"table {table}: the output lacks shards, or has some twice (it has {told})"
            )
    return {table: [path for *_, path in shards] for table, shards in found.items()}


def _check_table(table: str, shards: Sequence[Path], events: EventRange) -> None:
    try:
        opened = EventTable(table, shards)
        refuse_missing(opened, events)
    except UnusableDataset as error:
        raise UnusableDataset(f"the output is not usable: {error}") from error
    if len(opened.event_ids) != len(events):
        raise UnusableDataset(
            f"table {table} of the output holds {len(opened.event_ids)} events "
            f"({opened.event_ids[0]} to {opened.event_ids[-1]}), not the {len(events)} that were ordered"
        )
    schemas = [pq.read_schema(shard) for shard in shards]
    for shard, schema in zip(shards, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise UnusableDataset(f"{shard.name} of the output has other columns than {shards[0].name}")


def _describe(source: Path, path: str) -> DatasetFile:
    return DatasetFile(path, sha256_of(source), source.stat().st_size, pq.read_metadata(source).num_rows)
