"""Digests of the values of dataset tables, independent of how they were stored and read.

Each event has a digest, and the digest of many events is the sum of theirs. It depends on the values only:
not on the order of events, blocks or columns, the width of integers and floats, the machine or library
versions.

It shows that the right values were read, not how fast.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list

#: Digests are below it, so that they fit into a signed integer of 64 bits.
MODULUS: Final = 2**63

Numbers = npt.NDArray[Any]


def event_digests(table: pa.Table) -> npt.NDArray[np.uint64]:
    """Return the digest of each event.

    It is the first 8 bytes, modulo :data:`MODULUS`, of the SHA-256 of an event's columns, each after its
    name, in the order of the names: the lengths of its lists, level by level, then its values, as
    little-endian numbers of 64 bits. A null list differs from an empty one.

    Parameters
    ----------
    table : pyarrow.Table
        One row per event; columns of integers, floats, booleans, or lists of these to any depth, with their
        canonical names.

    Returns
    -------
    numpy.ndarray of uint64, shape (events,)

    Raises
    ------
    ValueError
        For any other type, and for nulls in place of numbers; the message names the column.

    Examples
    --------
    >>> narrow = pa.table({"event_id": pa.array([1], pa.uint8()), "x": [[0.5]]})
    >>> wide = pa.table({"x": [[0.5]], "event_id": pa.array([1], pa.uint64())})
    >>> bool(event_digests(narrow)[0] == event_digests(wide)[0])
    True
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
    """Combine the digests of events, or of groups of events.

    Parameters
    ----------
    digests : numpy.ndarray of uint64, shape (events,)

    Returns
    -------
    int
        Their sum modulo :data:`MODULUS`.

    Examples
    --------
    >>> together(np.array([MODULUS - 1, 3], np.uint64))
    2
    """
    # Sums of 64-bit integers wrap at a multiple of the modulus.
    return int(digests.sum(dtype=np.uint64)) % MODULUS


def _levels(name: str, column: pa.Array[Any]) -> Iterator[tuple[bytes, Numbers, npt.NDArray[np.int64]]]:
    """Lengths of lists, from the outermost on, and then values: each with a label of its own, and where
    in it each event begins and ends."""
    edges = np.arange(len(column) + 1)
    depth = 0
    while is_list(column.type):
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
