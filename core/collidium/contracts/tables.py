"""Conversion between dataset tables, one row per event with list columns, and tables with one row per hit.

Writers have several types for the same lists, texts and numbers; :func:`plain_type` and :func:`common_type`
choose one of them, and :func:`as_type` converts to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Maximum number of elements of a ``list`` array, whose offsets have 32 bits.
_MAX_ELEMENTS: Final = 2**31 - 1


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists: of any, large or fixed length, or views of lists."""
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds integers, floats or booleans."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def plain_type(kind: Any) -> pa.DataType:
    """Return the common type of the same values: ``list`` for all lists, ``string`` for views of strings.

    Examples
    --------
    >>> plain_type(pa.large_list(pa.list_(pa.string_view(), 2)))
    ListType(list<item: list<item: string>>)
    """
    if is_list(kind):
        inner = plain_type(kind.value_type)
        return kind if pa.types.is_list(kind) and inner == kind.value_type else pa.list_(inner)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def common_type(first: Any, second: Any) -> pa.DataType | None:
    """Return a type that holds the values of two :func:`plain_type`; None if there is none.

    It is an integer type for integers: int64 if one is uint64 and the other signed, which :func:`as_type`
    refuses for values above it.

    Examples
    --------
    >>> common_type(pa.list_(pa.uint64()), pa.list_(pa.int8())), common_type(pa.int8(), pa.string())
    (ListType(list<item: int64>), None)
    """
    if first == second:
        return plain_type(first)
    if is_list(first) and is_list(second):
        inner = common_type(first.value_type, second.value_type)
        return None if inner is None else pa.list_(inner)
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (first, second)]
    try:
        unified = pa.unify_schemas(
            [pa.schema([("", plain_type(kind))]) for kind in kinds], promote_options="permissive"
        )
    except pa.ArrowException:
        return None
    kind: pa.DataType = unified.field(0).type
    return kind


def as_type(column: pa.ChunkedArray[Any], kind: pa.DataType) -> pa.ChunkedArray[Any]:
    """Convert a column to a :func:`common_type`; values are not copied if only their lists differ.

    Raises
    ------
    pyarrow.ArrowInvalid
        For a value that the type does not hold exactly.
    """
    if column.type == kind:
        return column
    parts = [part for chunk in column.chunks for part in _parts(chunk, kind)]
    made: pa.ChunkedArray[Any] = pa.chunked_array(parts, type=kind)  # type: ignore[call-overload]  # one of many
    return made


def _parts(array: Any, kind: pa.DataType) -> Iterator[Any]:
    """Convert an array, in halves if a list would have too many elements."""
    if len(array) > 1 and _elements(array) > _MAX_ELEMENTS:
        half = len(array) // 2
        yield from _parts(array[:half], kind)
        yield from _parts(array[half:], kind)
    else:
        yield _converted(array, kind)


def _elements(array: Any) -> int:
    """The number of elements at the level that has most."""
    most = len(array)
    while is_list(array.type):
        array = pc.list_flatten(array)
        most = max(most, len(array))
    return most


def _converted(array: Any, kind: Any) -> Any:
    if array.type == kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if not is_list(kind):
        return array.cast(kind)
    # Arrow's own casts of views produce invalid arrays if there are nulls.
    offsets = np.concatenate([[0], np.cumsum(lengths_of(array))])
    values = _converted(pc.list_flatten(array), kind.value_type)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


UNREADABLE_INTEGERS: Final = (
    "has a column of integers with more than 64 bits, such as polars' Int128, which cannot be read: cast it "
    "to 64 bits"
)


def is_beyond_64_bits(error: BaseException) -> bool:
    """Return whether Arrow refused a file for integers with more than 64 bits, without their column."""
    return isinstance(error, pa.ArrowNotImplementedError) and "more than 64 bits" in str(error)


def lengths_of(column: Any) -> npt.NDArray[np.int64]:
    """Return the length of each list of an array; 0 for a null."""
    return np.asarray(pc.list_value_length(column).fill_null(0), dtype=np.int64)


def list_lengths(table: pa.Table, column: str) -> npt.NDArray[np.int64]:
    """Return the length of each event's list.

    Parameters
    ----------
    table : pyarrow.Table
        One row per event.
    column : str
        A list column of the table.

    Returns
    -------
    numpy.ndarray of int64, shape (events,)
        The lengths; 0 for a null list.

    Examples
    --------
    >>> list_lengths(pa.table({"event_id": [7, 8], "x": [[0.5, 1.5], []]}), "x").tolist()
    [2, 0]
    """
    return lengths_of(table.column(column))


def flatten(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return one row per list element, in the order of the events.

    Parameters
    ----------
    table : pyarrow.Table
        One row per event, with a column ``event_id``.
    columns : sequence of str
        List columns with equal lengths in each event.

    Returns
    -------
    pyarrow.Table, shape (sum of the lengths,)
        ``event_id``, repeated, and ``columns``.

    Raises
    ------
    ValueError
        If the lengths of two columns differ within an event.

    Examples
    --------
    >>> flatten(pa.table({"event_id": [7, 8], "x": [[0.5, 1.5], [2.5]]}), ["x"]).to_pydict()
    {'event_id': [7, 7, 8], 'x': [0.5, 1.5, 2.5]}
    """
    lengths = list_lengths(table, columns[0])
    for name in columns[1:]:
        if not np.array_equal(list_lengths(table, name), lengths):
            raise ValueError(f"columns {columns[0]} and {name} differ in length within an event")
    events = np.repeat(np.asarray(table.column("event_id")), lengths)
    flat = {name: pc.list_flatten(table.column(name)) for name in columns}
    return pa.table({"event_id": events, **flat})


def nested(lengths: npt.ArrayLike, values: Any) -> pa.Array[Any]:
    """Group values into lists, as the columns of dataset tables have them.

    Parameters
    ----------
    lengths : array_like of int, shape (lists,)
        The length of each list.
    values : pyarrow.Array or numpy.ndarray, shape (sum of the lengths,)
        The elements of all lists.

    Returns
    -------
    pyarrow.ListArray, shape (lists,)
        The lists.

    Examples
    --------
    >>> nested([2, 0, 1], np.array([1, 2, 3])).to_pylist()
    [[1, 2], [], [3]]
    """
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    elements = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements)


def positions_in_event(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number the rows of :func:`flatten` within each event.

    Parameters
    ----------
    lengths : numpy.ndarray of int64, shape (events,)
        The number of rows of each event.

    Returns
    -------
    numpy.ndarray of int64, shape (sum of the lengths,)
        0, 1, 2, … for the rows of each event.

    Examples
    --------
    >>> positions_in_event(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)
