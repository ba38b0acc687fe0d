"""Checks that a pipeline's output is a dataset: complete tables with exactly the events that were ordered.

The files are untrusted. Only :func:`check_tables` reads them as parquet, on a server in a worker process.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets.cards import DatasetFile
from collidium.datasets.reading.shards import EventTable, parquet_errors
from collidium.datasets.schemas import folder, shard_name
from collidium.errors import UnusableDataset
from collidium.files.durable import bytes_taken, is_sparse, sha256_of

MAX_FILES: Final = 20_000

#: ``<table>.parquet`` or ``<table>-00000-of-00004.parquet``.
_NAME: Final = re.compile(
    r"(?P<table>[a-z][a-z0-9_]{0,63})(-(?P<number>\d{1,9})-of-(?P<count>\d{1,9}))?\.parquet"
)


@dataclass(frozen=True, slots=True)
class OutputTable:
    """A table of an output before its check: shards in order of their numbers, and the ordered events."""

    name: str
    shards: Sequence[Path]
    events: EventRange


def check_output(
    paths: Collection[Path], root: Path, config: str, events: EventRange
) -> list[tuple[Path, DatasetFile]]:
    """Check an output in this process, and describe its files as those of a dataset. Blocks.

    Raises
    ------
    UnusableDataset
        Unless all files are tables below ``root``, and every table contains exactly the events, once each.
    """
    tables = find_tables(paths, root, events)
    return describe(tables, check_tables(tables), config)


def find_tables(
    paths: Collection[Path], root: Path, events: EventRange, max_bytes: int | None = None
) -> list[OutputTable]:
    """Group the files of an output by table, by their names. Blocks.

    Raises
    ------
    UnusableDataset
        Unless all files are regular, not sparse and below ``root``, have at most ``max_bytes`` in total, and
        every table has all of its shards.
    """
    paths = dict.fromkeys(paths)
    _check_count(len(paths))
    size = sum(_size(path, root.resolve()) for path in paths)
    if max_bytes is not None and size > max_bytes:
        raise UnusableDataset(f"the output has {size} bytes; {max_bytes} are allowed for what was ordered")
    return [OutputTable(name, shards, events) for name, shards in sorted(_tables(paths).items())]


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The result of the check of a table."""

    #: Rows of each shard.
    rows: list[int]
    #: Checksum of the names and types of all columns, without metadata.
    columns: str


def check_tables(tables: Sequence[OutputTable]) -> list[CheckedTable]:
    """Check the content of tables. Blocks.

    Raises
    ------
    UnusableDataset
        Unless each table contains exactly its events, once each, and its shards have the same columns.
    """
    return [_check_table(table) for table in tables]


def _check_table(table: OutputTable) -> CheckedTable:
    with _output_errors():
        footers = [_footer(shard) for shard in table.shards]
    rows = [footer.num_rows for footer in footers]
    if sum(rows) != len(table.events):
        raise UnusableDataset(
            f"table {table.name} of the output holds {sum(rows)} events, "
            f"not the {len(table.events)} that were ordered"
        )
    with _output_errors():
        EventTable(table.name, table.shards).refuse_missing(table.events)
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    for shard, schema in zip(table.shards, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise UnusableDataset(f"{shard.name} of the output has other columns than {table.shards[0].name}")
    columns = schemas[0].to_string(show_field_metadata=False, show_schema_metadata=False)
    return CheckedTable(rows, hashlib.sha256(columns.encode(errors="replace")).hexdigest())


def describe(
    tables: Sequence[OutputTable], checked: Iterable[CheckedTable], config: str
) -> list[tuple[Path, DatasetFile]]:
    """Return each file with its description as part of a dataset in the hosted layout. Blocks."""
    files = []
    for table, found in zip(tables, checked, strict=True):
        for number, (shard, count) in enumerate(zip(table.shards, found.rows, strict=True)):
            path = f"{folder(config, table.name)}/{shard_name(number, len(found.rows))}"
            files.append((shard, DatasetFile(path, sha256_of(shard), shard.stat().st_size, count)))
    return files


@dataclass(frozen=True, slots=True)
class PartFiles:
    """The described files of one part of an output."""

    files: Sequence[DatasetFile]
    #: :attr:`CheckedTable.columns` of each table, by its folder.
    columns: Mapping[str, str]


def describe_part(
    tables: Sequence[OutputTable], checked: Sequence[CheckedTable], config: str
) -> tuple[PartFiles, list[Path]]:
    """Describe the files of a part, and return their paths in the same order. Blocks."""
    described = describe(tables, checked, config)
    columns = {
        folder(config, table.name): found.columns for table, found in zip(tables, checked, strict=True)
    }
    return PartFiles([file for _, file in described], columns), [path for path, _ in described]


def merge(parts: Sequence[PartFiles]) -> list[DatasetFile]:
    """Number the shards of all parts consecutively, as those of one dataset.

    Parameters
    ----------
    parts : sequence of PartFiles
        All parts of an output, in the order of their events.

    Returns
    -------
    list of DatasetFile

    Raises
    ------
    UnusableDataset
        If parts have different tables or columns, or there are too many files.
    """
    for number, part in enumerate(parts):
        if part.columns != parts[0].columns:
            raise UnusableDataset(
                f"part {number} of the output has other tables or columns than part 0: "
                f"{', '.join(sorted(part.columns))}"
            )
    folders: dict[str, list[DatasetFile]] = {name: [] for name in sorted(parts[0].columns)}
    for part in parts:
        for file in part.files:
            folders[file.path.rpartition("/")[0]].append(file)
    _check_count(sum(map(len, folders.values())))
    return [
        replace(file, path=f"{name}/{shard_name(number, len(files))}")
        for name, files in folders.items()
        for number, file in enumerate(files)
    ]


def _check_count(files: int) -> None:
    if files > MAX_FILES:
        raise UnusableDataset(f"the output has {files} files; {MAX_FILES} are allowed")


def _size(path: Path, root: Path) -> int:
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    if found is None or not stat.S_ISREG(found.st_mode) or not path.resolve().is_relative_to(root):
        raise UnusableDataset(f"the output file {path.name} was not written by the job")
    if is_sparse(found):
        raise UnusableDataset(
            f"the output file {path.name} has holes: it is {found.st_size} bytes long, "
            f"and {found.st_blocks * 512} are on disk"
        )
    return bytes_taken(found)


def _tables(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The shards of each table in order of their numbers. Raises UnusableDataset unless all exist."""
    found: dict[str, list[tuple[int, int, Path]]] = {}
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise UnusableDataset(f"the output has a file {path.name!r}, which is not a table of a dataset")
        shard = (int(name["number"] or 0), int(name["count"] or 1), path)
        found.setdefault(name["table"], []).append(shard)
    for table, shards in found.items():
        shards.sort()
        if [(number, count) for number, count, _ in shards] != [(n, len(shards)) for n in range(len(shards))]:
            names = ", ".join(path.name for *_, path in shards[:5])
            raise UnusableDataset(
                f"table {table}: the output lacks shards, or has some twice (it has {names})"
            )
    return {table: [path for *_, path in shards] for table, shards in found.items()}


def _footer(path: Path) -> pq.FileMetaData:
    with parquet_errors(path.name):
        return pq.read_metadata(path)


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except UnusableDataset as error:
        raise UnusableDataset(f"the output is not usable: {error}") from error
