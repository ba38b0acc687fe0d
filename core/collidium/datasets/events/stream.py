"""An event on its way: its tables as Arrow IPC streams, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"


def write(tables: Mapping[str, pa.Table], about: Mapping[str, str]) -> bytes:
    """The tables, uncompressed so that browsers use them as they come; each schema tells ``about`` itself."""
    sink = pa.BufferOutputStream()
    for name, table in tables.items():
        told = table.replace_schema_metadata({"table": name, **about}).combine_chunks()
        with pa.ipc.new_stream(sink, told.schema) as writer:
            writer.write_table(told)
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
