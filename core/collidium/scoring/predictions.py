"""Reads the footer of a file of predictions and reports its problems before anything is decoded.

Runs in a worker process, as a footer is untrusted input, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.tables import UNREADABLE_INTEGERS, is_beyond_64_bits
from collidium.contracts.task import Card, Column, EventRange, Problem
from collidium.scoring.problems import MAX_PROBLEMS

#: How to treat columns that the task does not ask for; ignored ones are never decoded.
ExtraColumns = Literal["refuse", "ignore"]

#: The name that pandas gives to an index without a name.
_INDEX_COLUMN: Final = re.compile(r"__index_level_\d+__")
_INDEX_HINT: Final = ": it is the index of a pandas frame, which to_parquet(..., index=False) leaves out"
_MAGIC: Final = b"PAR1"
_ENCRYPTED_MAGIC: Final = b"PARE"
#: Maximum size of a footer. 10,000 row groups of three columns take 4 MB.
MAX_FOOTER_BYTES: Final = 64 * 1024**2
MAX_ROW_GROUPS: Final = 100_000
#: Maximum number of columns whose sizes are checked; a file with more is refused for its columns.
MAX_COLUMNS: Final = 1000
#: Maximum uncompressed bytes per value: eight, a dictionary entry, a level, and a margin for unusual writers.
MAX_BYTES_PER_VALUE: Final = 32
#: Additional bytes per column of a row group, for headers and half-filled pages.
SPARE_BYTES_PER_CHUNK: Final = 64 * 1024
#: Additional bytes in the file per column of a row group: page headers, its part of the footer.
FILE_BYTES_PER_CHUNK: Final = 1024
#: Additional bytes of a file: schemas, and metadata of writers.
SPARE_FILE_BYTES: Final = 1024**2


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are decoded together; ``first`` and ``last`` event are those of the statistics, or None."""

    index: int
    rows: int
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Footer:
    """Rows and row groups according to the footer."""

    rows: int
    groups: tuple[RowGroup, ...]


@dataclass(frozen=True, slots=True)
class FooterRequest:
    """A file to inspect, the card of its task, and its maximum number of rows."""

    path: Path
    card: Card
    max_rows: int
    extra_columns: ExtraColumns = "refuse"

    @property
    def events(self) -> EventRange | None:
        """The events that may be predicted, if they are known."""
        return None


def largest(rows: int, columns: int, groups: int) -> int:
    """Maximum size in bytes of a file with these rows, columns and row groups."""
    values = rows * columns * MAX_BYTES_PER_VALUE
    return values + min(groups, MAX_ROW_GROUPS) * columns * FILE_BYTES_PER_CHUNK + SPARE_FILE_BYTES


class Unreadable(Exception):
    """The file cannot be decoded; the message is for its author."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.problem = Problem(code, detail)


def inspect(request: FooterRequest) -> tuple[Footer | None, list[Problem]]:
    """Return the footer, or None, and its problems."""
    try:
        _check_magic(request.path)
        with pq.ParquetFile(request.path) as file:
            schema, metadata = file.schema_arrow, file.metadata
            problems = list(islice(_problems(request, schema, metadata), MAX_PROBLEMS))
            return (None if problems else _footer(metadata)), problems
    except Unreadable as error:
        return None, [error.problem]
    except Exception as error:  # a hostile footer makes the reader raise all kinds; each means the same
        if is_of_machine(error):
            raise
        if is_beyond_64_bits(error):
            return None, [Problem("wrong-type", f"the file {UNREADABLE_INTEGERS}")]
        return None, [Problem("corrupt", f"the parquet footer cannot be read: {first_line(error)}")]


def is_of_machine(error: Exception) -> bool:
    """Whether memory or the operating system failed; errors of a reader about content have no number."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, cut to a length that fits an answer."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _check_magic(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(max(size - 8, 0))
        tail = file.read(8)
    if size == 0:
        raise Unreadable("not-parquet", "the file is empty")
    if _ENCRYPTED_MAGIC in (head, tail[4:]):
        raise Unreadable("encrypted", "the parquet file is encrypted; submit it without encryption")
    if head != _MAGIC:
        raise Unreadable("not-parquet", "this is not a parquet file: it does not begin with PAR1")
    if size < 12 or tail[4:] != _MAGIC:
        raise Unreadable("truncated", "the parquet file is cut off: it does not end with PAR1")
    footer = int.from_bytes(tail[:4], "little")
    if footer > size - 12:
        raise Unreadable("truncated", f"the parquet footer claims {footer} bytes, more than the file has")
    if footer > MAX_FOOTER_BYTES:
        raise Unreadable(
            "footer-too-large",
            f"the parquet footer has {footer} bytes, at most {MAX_FOOTER_BYTES} are read: "
            "write larger row groups",
        )


def _problems(request: FooterRequest, schema: pa.Schema, metadata: pq.FileMetaData) -> Iterator[Problem]:
    """All problems, most important first: a hostile footer can have any number."""
    yield from _size_problems(request, metadata)
    yield from _column_problems(request, schema)


def _column_problems(request: FooterRequest, schema: pa.Schema) -> Iterator[Problem]:
    card = request.card
    counts = Counter(schema.names)
    wanted = f"; the columns are {', '.join(card.column_names)}"  # which only the first problem lists
    for column in card.columns:
        if column.name not in counts:
            yield Problem("missing-column", f"is missing{wanted}", column.name)
            wanted = ""
        elif counts[column.name] == 1:
            yield from _type_problems(column, schema.field(column.name).type)
    for name, count in counts.items():
        if name not in card.column_names:
            if not _is_refused(request, name):
                continue
            hint = _INDEX_HINT if _INDEX_COLUMN.fullmatch(name) else ""
            yield Problem("extra-column", f"is not asked for{hint}{wanted}", name[:100])
            wanted = ""
        elif count > 1:
            yield Problem("repeated-column", f"is there {count} times", name)


def _is_refused(request: FooterRequest, name: str) -> bool:
    # The reader treats `track_id.anything` as a part of `track_id` and would decode it, too.
    return request.extra_columns == "refuse" or name.partition(".")[0] in request.card.column_names


def _type_problems(column: Column, stored: pa.DataType) -> Iterator[Problem]:
    plain = stored.value_type if isinstance(stored, pa.DictionaryType) else stored
    if pa.types.is_integer(plain) or (column.kind == "float" and pa.types.is_floating(plain)):
        return
    wanted = "integers" if column.kind == "integer" else "floating-point numbers or integers"
    yield Problem("wrong-type", f"must hold {wanted}, not {str(stored)[:100]}", column.name)


def _size_problems(request: FooterRequest, metadata: pq.FileMetaData) -> Iterator[Problem]:
    rows = metadata.num_rows
    if rows == 0:
        yield Problem("no-rows", "the file has no rows")
    if rows > request.max_rows:
        yield Problem(
            "too-many-rows",
            f"the file has {rows} rows, at most {request.max_rows} are there to be predicted",
            count=rows - request.max_rows,
        )
        if request.events is not None:  # which is often why there are too many
            yield from _event_problems(request.events, metadata)
    elif metadata.num_row_groups > MAX_ROW_GROUPS:
        yield Problem(
            "too-many-row-groups",
            f"the file has {metadata.num_row_groups} row groups, at most {MAX_ROW_GROUPS} are read",
        )
    elif metadata.num_columns <= MAX_COLUMNS:
        yield from _group_problems(request, metadata)
        yield from _file_problems(request, metadata)
    elif request.extra_columns == "ignore":
        yield Problem(
            "too-many-columns",
            f"the file has {metadata.num_columns} columns, at most {MAX_COLUMNS} are looked at",
        )


def _event_problems(events: EventRange, metadata: pq.FileMetaData) -> Iterator[Problem]:
    """Events outside of the range according to statistics, as such a file is not decoded."""
    groups = (metadata.row_group(number) for number in range(min(metadata.num_row_groups, MAX_ROW_GROUPS)))
    claims = [(group.num_rows, *_claimed_events(group)) for group in groups]
    known = [(rows, first, last) for rows, first, last in claims if first is not None and last is not None]
    outside = [claim for claim in known if claim[1] < events.start or claim[2] >= events.stop]
    if outside:
        first, last = min(claim[1] for claim in outside), max(claim[2] for claim in outside)
        none = sum(rows for rows, first, last in outside if last < events.start or first >= events.stop)
        yield Problem(
            "unknown-event",
            f"has events outside of {events.start} to {events.stop - 1}",
            "event_id",
            event_id=first if first < events.start else last,
            count=max(none, 1),
        )


def _file_problems(request: FooterRequest, metadata: pq.FileMetaData) -> Iterator[Problem]:
    """Limits bytes between the pages, which are never read but stored."""
    size = request.path.stat().st_size
    limit = largest(metadata.num_rows, metadata.num_columns, metadata.num_row_groups)
    if size > limit:
        yield Problem(
            "too-large",
            f"the file has {size} bytes, its {metadata.num_rows} rows should take less than {limit}",
        )


def _group_problems(request: FooterRequest, metadata: pq.FileMetaData) -> Iterator[Problem]:
    read = _columns_read(request, metadata)
    total = chunks = size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        total += group.num_rows
        chunks += len(read)
        size += sum(max(group.column(index).total_uncompressed_size, 0) for index in read)
    if total != metadata.num_rows:
        yield Problem("corrupt", f"the row groups have {total} rows, the footer claims {metadata.num_rows}")
    limit = total * len(read) * MAX_BYTES_PER_VALUE + chunks * SPARE_BYTES_PER_CHUNK
    if size > limit:
        yield Problem(
            "too-large-to-decode", f"the file decodes to {size} bytes, far too many for {total} rows"
        )


def _columns_read(request: FooterRequest, metadata: pq.FileMetaData) -> list[int]:
    """The columns that count for the decoded size."""
    columns = range(metadata.num_columns)
    if request.extra_columns == "refuse":
        return list(columns)
    return [index for index in columns if metadata.schema.column(index).path in request.card.column_names]


def _footer(metadata: pq.FileMetaData) -> Footer:
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        first, last = _claimed_events(group)
        if group.num_rows:
            groups.append(RowGroup(number, group.num_rows, first, last))
    return Footer(metadata.num_rows, tuple(groups))


def _claimed_events(group: pq.RowGroupMetaData) -> tuple[int | None, int | None]:
    columns = (group.column(index) for index in range(group.num_columns))
    statistics: Any = next((c.statistics for c in columns if c.path_in_schema == "event_id"), None)
    if statistics is None or not statistics.has_min_max:
        return None, None
    first, last = statistics.min, statistics.max
    if not isinstance(first, int) or not isinstance(last, int):
        return None, None
    return (first, last) if first <= last else (None, None)
