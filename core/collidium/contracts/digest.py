"""What was read of a dataset table, as numbers: equal for equal values, whatever stored and read them.

Each event has a number of its own, and a number for many events is their sum. So neither the order of events
nor the blocks in which they come make a difference, and nothing but the values does: not the machine, not the
width of an integer or a float, not the order of columns, not the version of a library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Digests lie below it, so that they fit into a signed integer of 64 bits.
MODULUS: Final = 2**63

Numbers = npt.NDArray[Any]


def event_digests(table: pa.Table) -> npt.NDArray[np.uint64]:
    """The digest of each row of a dataset table, which is one event; shape (events,).

    Columns are integers, floats, booleans, or lists of these, to any depth; they go by their canonical names.
    It is the first 8 bytes of the SHA-256 of an event's columns, each after its name, in order of
    names: the lengths of its lists, level by level, then its values, as little-endian numbers of 64 bits.

    Raises ValueError, with the column, for any other type and for nulls in place of numbers. A list may be
    null, and is then not the same as an empty one.
    """
    events = [hashlib.sha256() for _ in range(table.num_rows)]
    for name in sorted(table.column_names):
        for label, values, edges in _levels(name, table.column(name).combine_chunks()):
            for event, first, stop in zip(events, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
                event.update(label)
                event.update(values[first:stop].data)
    numbers = [int.from_bytes(event.digest()[:8], "little") % MODULUS for event in events]
    return np.array(numbers, np.uint64)


def together(digests: npt.NDArray[np.uint64]) -> int:
    """The digest of many events from that of each, or of parts of them: below ``MODULUS``."""
    # Sums of 64-bit integers wrap at a multiple of the modulus.
    return int(digests.sum(dtype=np.uint64)) % MODULUS


def _levels(name: str, column: pa.Array[Any]) -> Iterator[tuple[bytes, Numbers, npt.NDArray[np.int64]]]:
    """Lengths of lists, from the outermost on, and then values: each with a label of its own, and where
    in it each event begins and ends."""
    edges = np.arange(len(column) + 1)
    depth = 0
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = np.asarray(pc.list_value_length(column).fill_null(-1)).astype("<i8")
        yield f"{name}/{depth}".encode(), lengths, edges
        edges = np.cumsum([0, *np.maximum(lengths, 0)])[edges]
        column, depth = pc.list_flatten(column), depth + 1
    kind, values = _values(name, column)
    yield f"{name}={kind}".encode(), values, edges


def _values(name: str, column: pa.Array[Any]) -> tuple[str, Numbers]:
    """Whether they are integers (``i``) or floats (``f``), and the values in 64 bits."""
    if column.null_count:
        raise ValueError(f"column {name} has nulls in place of numbers")
    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        return "i", np.asarray(column).astype("<i8")
    if pa.types.is_floating(column.type):
        floats = np.asarray(column).astype("<f8")
        floats[np.isnan(floats)] = np.nan  # of which there are many
        return "f", floats
    raise ValueError(f"column {name} holds neither numbers nor lists of them, but {column.type}")
