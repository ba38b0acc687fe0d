"""Arrow files that stages exchange; they are written atomically."""

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
    """Yield a temporary path; the file is moved to ``path`` when the block ends without an exception."""
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sweep(work: Path) -> None:
    """Remove incomplete files of killed processes from a working directory."""
    for partial in work.glob(f"**/.*{_PARTIAL}"):
        partial.unlink(missing_ok=True)


def write(path: Path, table: pa.Table, *, compress: bool = True) -> None:
    """Write the table as an arrow file of one batch; uncompressed files can be memory-mapped."""
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)
    table = table.combine_chunks()
    with (
        writing(path) as partial,
        pa.OSFile(str(partial), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()
