"""Checks that a pipeline's output is a dataset: every table whole, with exactly the events that were ordered.

The files are untrusted. :func:`find_tables` and :func:`describe` open none of them as parquet;
:func:`check_tables` does, and a server calls it in a worker process.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets.cards import DatasetFile, sha256_of_bytes
from collidium.datasets.reading.dataset import refuse_missing
from collidium.datasets.reading.shards import EventTable
from collidium.datasets.writing import folder, shard_name
from collidium.errors import UnusableDataset
from collidium.files.durable import bytes_taken, is_sparse, sha256_of

#: Files of one output.
MAX_FILES: Final = 20_000

#: ``<table>.parquet`` or ``<table>-00000-of-00004.parquet``.
_NAME: Final = re.compile(
    r"(?P<table>[a-z][a-z0-9_]{0,63})(-(?P<number>\d{1,9})-of-(?P<count>\d{1,9}))?\.parquet"
)


@dataclass(frozen=True, slots=True)
class OutputTable:
    """A table of an output that was not read yet.

    ``shards`` lie in the order of their numbers and hold ``events`` if they are what was ordered.
    """

    name: str
    shards: Sequence[Path]
    events: EventRange


def check_output(
    paths: Collection[Path], root: Path, config: str, events: EventRange
) -> list[tuple[Path, DatasetFile]]:
    """Check an output in this process, and return its files as they are in a dataset of the hosted layout.

    Blocks.

    Raises
    ------
    UnusableDataset
        Unless all files are tables of their own below ``root``, and every table holds each of the events
        once and no other.
    """
    tables = find_tables(paths, root, events)
    return describe(tables, check_tables(tables), config)


def find_tables(
    paths: Collection[Path], root: Path, events: EventRange, max_bytes: int | None = None
) -> list[OutputTable]:
    """Sort the files of an output into tables, by their names. Blocks.

    Raises
    ------
    UnusableDataset
        Unless all files are regular files below ``root`` that lie on disk as long as they are, with
        ``max_bytes`` together, and every table has all of its shards.
    """
    paths = dict.fromkeys(paths)
    _refuse_many(len(paths))
    size = sum(_size(path, root.resolve()) for path in paths)
    if max_bytes is not None and size > max_bytes:
        raise UnusableDataset(f"the output has {size} bytes; {max_bytes} are allowed for what was ordered")
    return [OutputTable(name, shards, events) for name, shards in sorted(_tables(paths).items())]


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """What was found in the shards of a table."""

    #: Of each shard.
    rows: list[int]
    #: Checksum of the names and types of all columns, without metadata.
    columns: str


def check_tables(tables: Sequence[OutputTable]) -> list[CheckedTable]:
    """Return what :func:`check_table` returns for each table. Blocks. Raises UnusableDataset."""
    return [check_table(table) for table in tables]


def check_table(table: OutputTable) -> CheckedTable:
    """Return what is in the shards of a table. Blocks.

    Raises
    ------
    UnusableDataset
        Unless the table holds each of its events once and no other, and all shards have the same columns.
    """
    footers = [_footer(shard) for shard in table.shards]
    rows = [footer.num_rows for footer in footers]
    if sum(rows) != len(table.events):
        raise UnusableDataset(
            f"table {table.name} of the output holds {sum(rows)} events, "
            f"not the {len(table.events)} that were ordered"
        )
    try:
        refuse_missing(EventTable(table.name, table.shards), table.events)
    except UnusableDataset as error:
        raise UnusableDataset(f"the output is not usable: {error}") from error
    schemas = [footer.schema.to_arrow_schema() for footer in footers]
    for shard, schema in zip(table.shards, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise UnusableDataset(f"{shard.name} of the output has other columns than {table.shards[0].name}")
    columns = schemas[0].to_string(show_field_metadata=False, show_schema_metadata=False)
    return CheckedTable(rows, sha256_of_bytes(columns.encode(errors="replace")))


def describe(
    tables: Sequence[OutputTable], checked: Iterable[CheckedTable], config: str
) -> list[tuple[Path, DatasetFile]]:
    """Return each file with its description in a dataset; ``checked`` is what :func:`check_tables` returned.

    Blocks.
    """
    files = []
    for table, found in zip(tables, checked, strict=True):
        for number, (shard, count) in enumerate(zip(table.shards, found.rows, strict=True)):
            path = f"{folder(config, table.name)}/{shard_name(number, len(found.rows))}"
            files.append((shard, DatasetFile(path, sha256_of(shard), shard.stat().st_size, count)))
    return files


@dataclass(frozen=True, slots=True)
class PartFiles:
    """The files of one part of an output, checked and described by themselves."""

    files: Sequence[DatasetFile]
    #: :attr:`CheckedTable.columns` of each table, by its folder.
    columns: Mapping[str, str]


def describe_part(
    tables: Sequence[OutputTable], checked: Sequence[CheckedTable], config: str
) -> tuple[PartFiles, list[Path]]:
    """Return the description of a part and its files in the same order. Blocks."""
    described = describe(tables, checked, config)
    columns = {
        folder(config, table.name): found.columns for table, found in zip(tables, checked, strict=True)
    }
    return PartFiles([file for _, file in described], columns), [path for path, _ in described]


def merge(parts: Sequence[PartFiles]) -> list[DatasetFile]:
    """Number the shards of all parts, in their order, as those of one dataset.

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
        For parts with other tables or columns than the first, and for too many files.
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
    _refuse_many(sum(map(len, folders.values())))
    return [
        replace(file, path=f"{name}/{shard_name(number, len(files))}")
        for name, files in folders.items()
        for number, file in enumerate(files)
    ]


def _refuse_many(files: int) -> None:
    if files > MAX_FILES:
        raise UnusableDataset(f"the output has {files} files; {MAX_FILES} are allowed")


def _size(path: Path, root: Path) -> int:
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    if found is None or not stat.S_ISREG(found.st_mode) or not path.resolve().is_relative_to(root):
        raise UnusableDataset(f"the output file {path.name} is no file of the job's own")
    if is_sparse(found):
        raise UnusableDataset(
            f"the output file {path.name} has holes: it is {found.st_size} bytes long, "
            f"and {found.st_blocks * 512} are on disk"
        )
    return bytes_taken(found)


def _tables(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The shards of each table in the order of their numbers; raises unless all are there."""
    found: dict[str, list[tuple[int, int, Path]]] = {}
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise UnusableDataset(f"the output has a file {path.name!r}, which is no table of a dataset")
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
    try:
        return pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, MemoryError):
            raise
        raise UnusableDataset(
            f"the output is not usable: {path.name}: cannot be read as parquet: {error}"
        ) from error
