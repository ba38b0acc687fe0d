"""Tables of one event as they are shown: known columns, a row for each hit, cell, particle, track or jet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from collidium.datasets.reading.dataset import flat
from collidium.datasets.schemas import SCHEMAS
from collidium.errors import UnusableDataset

#: Hosted columns that are not drawn: true positions of hits, and contributions to cells.
_LEFT_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "tracker_hits": ("true_x", "true_y", "true_z"),
    "calo_hits": ("contrib_particle_ids", "contrib_energies", "contrib_times"),
}
#: Columns that some releases have in addition to the hosted ones, with their units.
_MORE: Final[Mapping[str, tuple[tuple[str, pa.DataType, str], ...]]] = {
    "tracker_hits": (("hit_id", pa.uint32(), ""),),
    "calo_hits": (("particle_id", pa.uint64(), ""),),
    "particles": (("pt", pa.float32(), "GeV"),),
}


def _shown(table: str) -> pa.Schema:
    hosted = [
        field.with_type(field.type.value_type)
        for field in SCHEMAS[table]
        if field.name != "event_id" and field.name not in _LEFT_OUT.get(table, ())
    ]
    more = [
        pa.field(name, kind, metadata={"unit": unit} if unit else None)
        for name, kind, unit in _MORE.get(table, ())
    ]
    return pa.schema([*more, *hosted])


#: Every column that is shown, with the type and unit of one row.
SHOWN: Final[Mapping[str, pa.Schema]] = {table: _shown(table) for table in SCHEMAS}


def shown(name: str, event: pa.Table) -> pa.Table:
    """Table ``name`` of one event, a row of lists by canonical names, as it is shown.

    Columns that have no value at all are left out, as withheld ones. Raises UnusableDataset where a column
    is not of its type.
    """
    schema = SHOWN[name]
    known = [column for column in event.column_names if column == "event_id" or column in schema.names]
    for column in known:
        if column != "event_id" and not pa.types.is_list(event.schema.field(column).type):
            raise UnusableDataset(f"table {name}: column {column} must hold lists, one for each event")
    try:
        rows = flat(event.select(known), name)
        columns = {
            field.name: _cast(name, rows.column(field.name), field)
            for field in schema
            if field.name in rows.column_names and not _is_empty(rows.column(field.name))
        }
    except pa.ArrowException as error:
        raise UnusableDataset(f"table {name} cannot be read: {error}") from error
    return pa.table(list(columns.values()), schema=pa.schema([schema.field(column) for column in columns]))


def _is_empty(column: pa.ChunkedArray[Any]) -> bool:
    return 0 < len(column) == column.null_count


def _cast(table: str, column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
    """The column in the type that is shown; text is no number, even where it could be read as one."""
    if not _alike(column.type, field.type):
        raise UnusableDataset(f"table {table}: column {field.name} has elements of type {column.type}")
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise UnusableDataset(f"table {table}: column {field.name}: {error}") from error


def _alike(stored: pa.DataType, kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return pa.types.is_list(stored) and _alike(stored.value_type, kind.value_type)
    if pa.types.is_boolean(kind):
        return pa.types.is_boolean(stored)
    return pa.types.is_integer(stored) or pa.types.is_floating(stored)


MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"


def write(tables: Mapping[str, pa.Table], about: Mapping[str, str]) -> bytes:
    """Write the tables, uncompressed so that browsers use them as they are; ``about`` is schema metadata."""
    sink = pa.BufferOutputStream()
    for name, table in tables.items():
        described = table.replace_schema_metadata({"table": name, **about}).combine_chunks()
        with pa.ipc.new_stream(sink, described.schema) as writer:
            writer.write_table(described)
    return sink.getvalue().to_pybytes()


def read(content: bytes) -> dict[str, pa.Table]:
    """The tables by their names. Raises ValueError for anything else."""
    source = pa.BufferReader(content)
    tables = {}
    try:
        while source.tell() < len(content):
            with pa.ipc.open_stream(source) as reader:
                table = reader.read_all()
            tables[(table.schema.metadata or {})[b"table"].decode()] = table
    except (pa.ArrowException, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"no tables of an event: {error}") from error
    return tables
