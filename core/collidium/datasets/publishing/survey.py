"""Checks a local dataset before it is published, and lists all problems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.contracts.tables import common_type, is_list
from collidium.datasets import layout
from collidium.datasets.reading.dataset import parquet_files
from collidium.datasets.reading.shards import batch_rows
from collidium.datasets.reading.types import EventIds, checked_ids, only_records, why_unreadable
from collidium.datasets.schemas import SCHEMAS
from collidium.errors import UnusableDataset
from collidium.runtime.progress import Progress, ProgressCount

_CONFIG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*_pu\d{1,4}")
#: Maximum number of listed problems of one kind.
_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class SurveyedShard:
    """A parquet file of a table."""

    path: Path
    events: EventIds
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class SurveyedConfig:
    """The tables of a config, which have the same events. Shards are sorted by their first event."""

    name: str
    tables: Mapping[str, Sequence[SurveyedShard]]

    @property
    def events(self) -> EventIds:
        """The ids of all events, ascending."""
        return _events(next(iter(self.tables.values())))


@dataclass(frozen=True, slots=True)
class Survey:
    """The configs of a directory."""

    configs: Sequence[SurveyedConfig]
    #: Parquet files that belong to no config.
    left_out: Sequence[str]


def survey(directory: Path, config: str | None = None, progress: Progress | None = None) -> Survey:
    """Read and check every file of every config, or of one. Blocks.

    Every file must be readable, with ascending integers in column ``event_id`` and, in tables of the hosted
    format, lists of equal lengths. All shards of a table must have the same columns, and all tables of a
    config the same events, once each. ``config`` also names the config of tables in no folder.

    Raises UnusableDataset with all problems in ``errors``.
    """
    if not directory.is_dir():
        raise UnusableDataset(f"there is no directory {directory}")
    paths = sorted(parquet_files(directory))
    found = _tables(paths, config)
    taken = {path for tables in found.values() for shards in tables.values() for path in shards}
    count = ProgressCount(progress, sum((directory / path).stat().st_size for path in taken))
    problems: list[dict[str, Any]] = []
    configs = []
    for name, tables in found.items():
        surveyed: dict[str, list[SurveyedShard]] = {}
        for table, shards in tables.items():
            for path in shards:
                shard = _read_shard(directory / path, path, table, problems)
                if shard is not None:
                    surveyed.setdefault(table, []).append(shard)
                count.add((directory / path).stat().st_size)
        whole = [table for table, shards in tables.items() if len(surveyed.get(table, ())) == len(shards)]
        problems += _contradictions(directory, name, surveyed, whole)
        configs.append(SurveyedConfig(name, {table: _in_order(of) for table, of in surveyed.items()}))
    if problems:
        number = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise UnusableDataset(f"{directory} cannot be published, it has {number}", errors=problems)
    return Survey(configs, [path for path in paths if path not in taken])


# -- which files ----------------------------------------------------------------------------------------


def _tables(paths: Sequence[str], config: str | None) -> dict[str, dict[str, list[str]]]:
    """Config -> table -> paths. Raises UnusableDataset if the config is unknown or ambiguous."""
    configs = layout.configs(paths)
    flat = configs.pop("", ())
    if not configs and not flat:
        raise UnusableDataset("there are no parquet files of a dataset in the directory")
    if not configs:
        name = _checked_name(config, flat)
        return {name: {table: layout.shards(paths, table) for table in flat}}
    if config is not None and config not in configs:
        raise UnusableDataset(f"there is no config {config}; there are {', '.join(configs)}")
    in_folders = [path for path in paths if path.removeprefix("data/").count("/")]
    return {
        name: {table: layout.shards(in_folders, table, name) for table in tables}
        for name, tables in configs.items()
        if config in (None, name)
    }


def _checked_name(config: str | None, tables: Sequence[str]) -> str:
    if config is None:
        raise UnusableDataset(
            f"the tables {', '.join(tables)} lie in the directory itself, which does not name their config: "
            "give its name, for example --config ttbar_pu0"
        )
    if not _CONFIG.fullmatch(config):
        raise UnusableDataset(f"{config}: a config is called <channel>_pu<pileup>, for example ttbar_pu200")
    return config


# -- a file ---------------------------------------------------------------------------------------------


def _read_shard(path: Path, shown: str, table: str, problems: list[dict[str, Any]]) -> SurveyedShard | None:
    """Read a shard and add its problems; None if its events cannot be read."""
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            events, uneven = _decode(file, table)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problems.append(problem(shown, why_unreadable(error)))
        return None
    except (_Unusable, ValueError) as error:
        problems.append(problem(shown, str(error)))
        return None
    if uneven:
        problems.append(problem(shown, uneven))
    if np.any(events[1:] <= events[:-1]):
        problems.append(problem(shown, "event ids must be ascending and unique"))
    return SurveyedShard(path, events, schema)


class _Unusable(Exception):
    """A file that cannot be published; the message says why."""


def _decode(file: pq.ParquetFile, table: str) -> tuple[EventIds, str | None]:
    """Decode a whole file in bounded memory. Returns its events and a difference in lengths of lists."""
    schema = file.schema_arrow
    if "event_id" not in schema.names:
        raise _Unusable("has no column event_id")
    if len(set(schema.names)) != len(schema.names):
        raise _Unusable("has a column twice")
    if table in SCHEMAS and (records := only_records(schema)) is not None:
        raise _Unusable(records)
    checked_ids(pa.array([], schema.field("event_id").type))
    lists = [field.name for field in schema if is_list(field.type)] if table in SCHEMAS else []
    events = [np.empty(0, np.int64)]
    uneven = None
    for batch in file.iter_batches(_batch_rows(file)):
        events.append(checked_ids(batch.column("event_id")))
        uneven = uneven or _uneven(batch, lists, events[-1])
    return np.concatenate(events), uneven


def _batch_rows(file: pq.ParquetFile) -> int:
    metadata = file.metadata
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return batch_rows(size, metadata.num_rows)


def _uneven(batch: pa.RecordBatch, lists: Sequence[str], events: EventIds) -> str | None:
    known: dict[str, Any] = {}
    for name in lists:
        column = batch.column(name)
        if column.null_count:
            continue  # withheld: lists of a null have no length to compare
        lengths = np.asarray(pc.list_value_length(column))
        first = next(iter(known), None)
        if first is not None and np.any(lengths != known[first]):
            row = int(np.flatnonzero(lengths != known[first])[0])
            return f"columns {first} and {name} have different lengths in event {events[row]}"
        known[name] = lengths
    return None


# -- files together -------------------------------------------------------------------------------------


def _contradictions(
    directory: Path, config: str, tables: Mapping[str, Sequence[SurveyedShard]], whole: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Problems between the shards of a table, and between the completely read tables ``whole``."""
    for table, shards in tables.items():
        yield from _of_table(directory, table, shards)
    every = np.unique(np.concatenate([np.empty(0, np.int64), *(_events(tables[table]) for table in whole)]))
    for table in whole:
        missing = np.setdiff1d(every, _events(tables[table]))
        if len(missing):
            examples = ", ".join(map(str, missing[:5].tolist()))
            yield problem(
                f"{config}, table {table}",
                f"lacks {len(missing)} of the {len(every)} events that other tables have, "
                f"for example {examples}",
            )


def _of_table(directory: Path, table: str, shards: Sequence[SurveyedShard]) -> Iterator[dict[str, Any]]:
    first = shards[0]
    differences = ((shard, _difference(first.schema, shard.schema)) for shard in shards)
    for shard, difference in islice((pair for pair in differences if pair[1]), _LISTED):
        yield problem(
            _shown(directory, shard), f"has other columns than {_shown(directory, first)}: {difference}"
        )
    ids = np.sort(np.concatenate([np.unique(shard.events) for shard in shards]))
    repeated = np.unique(ids[1:][ids[1:] == ids[:-1]])
    if len(repeated):
        holders = [_shown(directory, shard) for shard in shards if repeated[0] in shard.events]
        yield problem(
            f"table {table}",
            f"{len(repeated)} events occur twice, for example event {repeated[0]} in "
            f"{' and '.join(holders[:3])}",
        )


def _difference(expected: pa.Schema, there: pa.Schema) -> str:
    """The difference between the columns of two shards; empty if they can be written with the same types."""
    for field in expected:
        index = there.get_field_index(field.name)
        if index < 0:
            return f"{field.name} is missing"
        if common_type(field.type, there.field(index).type) is None:
            return f"{field.name} is {there.field(index).type}, not {field.type}"
    more = [name for name in there.names if name not in expected.names]
    return f"{more[0]} is additional" if more else "in another order" if there.names != expected.names else ""


def _events(shards: Sequence[SurveyedShard]) -> EventIds:
    return np.sort(np.concatenate([shard.events for shard in shards]))


def _in_order(shards: Sequence[SurveyedShard]) -> list[SurveyedShard]:
    """Sort shards by their first event."""
    return sorted(
        shards, key=lambda shard: (not len(shard.events), int(shard.events[0]) if len(shard.events) else 0)
    )


def _shown(directory: Path, shard: SurveyedShard) -> str:
    return shard.path.relative_to(directory).as_posix()


def problem(field: str, detail: str) -> dict[str, Any]:
    return {"field": field, "detail": detail}
