"""Small parquet files that decode to hundreds of megabytes."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: 280 MB of event ids, as they are stored without encoding.
ROWS = 70_000_000
_GROUP = 10_000_000
#: Older releases bound pages by their bytes alone.
_LONG_PAGES: Any = dict.fromkeys({"max_rows_per_page"} & signature(pq.write_table).parameters.keys(), ROWS)


def write_equal_ids(path: Path) -> None:
    """Write a table in which each event is event 0."""
    rows = pa.table({"event_id": pa.array(np.zeros(_GROUP, np.uint32))})
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as file:
        for _ in range(ROWS // _GROUP):
            file.write_table(rows, row_group_size=_GROUP)


def write_long_page(path: Path, rows: int = 6) -> None:
    """Write a table whose footer claims ``rows`` rows; its one page holds many millions."""
    table = pa.table({"event_id": pa.array(np.zeros(ROWS, np.uint32))})
    pq.write_table(
        table,
        path,
        row_group_size=ROWS,
        compression="zstd",
        use_dictionary=False,
        data_page_size=2**30,
        **_LONG_PAGES,
        write_statistics=False,
    )
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(
        content[:footer] + content[footer:].replace(_varint(ROWS), _varint(rows, len(_varint(ROWS))))
    )


def _varint(number: int, length: int = 0) -> bytes:
    """The number as thrift has it, in ``length`` bytes at least."""
    number *= 2
    digits = []
    while number or len(digits) < max(length, 1):
        digits.append(number & 127)
        number >>= 7
    return bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])
