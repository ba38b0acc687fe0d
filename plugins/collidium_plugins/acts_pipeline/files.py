"""Files between the stages: arrow tables that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

_PARTIAL: Final = ".partial"


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A place to write a file to: it appears at ``path`` when the block ends, not when the block raises."""
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sweep(work: Path) -> None:
    """Remove what killed processes left half-written in the folders of a working directory."""
    for partial in work.glob(f"**/.*{_PARTIAL}"):
        partial.unlink(missing_ok=True)


def write(path: Path, table: pa.Table, *, compress: bool = True) -> None:
    """Write the table as an arrow file, one batch; uncompressed it can be mapped into memory."""
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)
    table = table.combine_chunks()
    with (
        writing(path) as partial,
        pa.OSFile(str(partial), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def read(path: Path) -> pa.Table:
    """The table of an arrow file."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()
