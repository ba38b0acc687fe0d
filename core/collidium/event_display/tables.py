"""Tables of one event for display: known columns, with a row per hit, cell, particle, track or jet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from collidium.contracts.tables import is_list
from collidium.datasets.reading.dataset import flat
from collidium.datasets.schemas import SCHEMAS
from collidium.errors import UnusableDataset

#: Hosted columns that are not shown: true positions of hits, and contributions to cells.
_HIDDEN: Final[Mapping[str, tuple[str, ...]]] = {
    "tracker_hits": ("true_x", "true_y", "true_z"),
    "calo_hits": ("contrib_particle_ids", "contrib_energies", "contrib_times"),
}
#: Columns that some releases have in addition to the hosted ones, with their units.
_EXTRA: Final[Mapping[str, tuple[tuple[str, pa.DataType, str], ...]]] = {
    "tracker_hits": (("hit_id", pa.uint32(), ""),),
    "calo_hits": (("particle_id", pa.uint64(), ""),),
    "particles": (("pt", pa.float32(), "GeV"),),
}


def _shown(table: str) -> pa.Schema:
    hosted = [
        field.with_type(field.type.value_type)
        for field in SCHEMAS[table]
        if field.name != "event_id" and field.name not in _HIDDEN.get(table, ())
    ]
    extra = [
        pa.field(name, kind, metadata={"unit": unit} if unit else None)
        for name, kind, unit in _EXTRA.get(table, ())
    ]
    return pa.schema([*extra, *hosted])


#: Shown columns of each table, with types and units.
SHOWN: Final[Mapping[str, pa.Schema]] = {table: _shown(table) for table in SCHEMAS}


def shown(name: str, event: pa.Table) -> pa.Table:
    """Return table ``name`` for display, from a row of lists as :class:`EventTable` reads it.

    Columns without any value are left out, like withheld ones. Raises UnusableDataset if a column has another
    type.
    """
    schema = SHOWN[name]
    known = [column for column in event.column_names if column == "event_id" or column in schema.names]
    for column in known:
        if column != "event_id" and not is_list(event.schema.field(column).type):
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
    """Cast a column to the shown type. Text is rejected even if it could be parsed as a number."""
    if not _alike(column.type, field.type):
        raise UnusableDataset(f"table {table}: column {field.name} has elements of type {column.type}")
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise UnusableDataset(f"table {table}: column {field.name}: {error}") from error


def _alike(stored: Any, kind: Any) -> bool:
    if pa.types.is_null(stored):  # without any value
        return True
    if is_list(kind):
        return is_list(stored) and _alike(stored.value_type, kind.value_type)
    if pa.types.is_boolean(kind):
        return pa.types.is_boolean(stored)
    return pa.types.is_integer(stored) or pa.types.is_floating(stored)


MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"


def write(tables: Mapping[str, pa.Table], about: Mapping[str, str]) -> bytes:
    """Write tables as Arrow streams, uncompressed for browsers; ``about`` is metadata of their schemas."""
    sink = pa.BufferOutputStream()
    for name, table in tables.items():
        described = table.replace_schema_metadata({"table": name, **about}).combine_chunks()
        with pa.ipc.new_stream(sink, described.schema) as writer:
            writer.write_table(described)
    return sink.getvalue().to_pybytes()


def read(content: bytes) -> dict[str, pa.Table]:
    """Read what :func:`write` wrote. Raises ValueError for anything else."""
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
