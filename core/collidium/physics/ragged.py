"""Columns of lists as two flat arrays: values, and the offset of each list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import as_type, is_list, plain_type

Array = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]

#: Alignment of arrays in bytes, with which JAX does not copy them.
ALIGNMENT = 64

#: Allocates the memory of the arrays that :func:`aligned` returns; takes the number of bytes.
ALLOCATE: ContextVar[Callable[[int], Array] | None] = ContextVar("allocate", default=None)


@dataclass(frozen=True, slots=True, eq=False)
class Ragged(np.lib.mixins.NDArrayOperatorsMixin):
    """A column with a list for each event.

    NumPy's arithmetic and universal functions act on the values and keep the offsets.

    Parameters
    ----------
    values : numpy.ndarray or Ragged, shape (values,)
        The elements of all lists; ``Ragged`` for lists of lists.
    offsets : numpy.ndarray of int64, shape (lists + 1,)
        List ``n`` is ``values[offsets[n]:offsets[n + 1]]``. The first is 0, the last the number of values.

    Examples
    --------
    >>> x = Ragged(np.array([3.0, 4.0, 5.0]), np.array([0, 2, 2, 3]))
    >>> len(x), x.lengths.tolist(), (2 * x)[0].tolist()
    (3, [2, 0, 1], [6.0, 8.0])
    """

    values: Any
    offsets: Integers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int | slice) -> Any:
        """Return the values of one list, or a ``Ragged`` of consecutive lists, without a copy."""
        start, stop, _ = (
            index.indices(len(self)) if isinstance(index, slice) else (range(len(self))[index], None, 1)
        )
        if stop is None:
            return self.values[int(self.offsets[start]) : int(self.offsets[start + 1])]
        offsets = self.offsets[start : max(stop, start) + 1]
        return Ragged(self.values[int(offsets[0]) : int(offsets[-1])], offsets - offsets[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    @property
    def lengths(self) -> Integers:
        """The number of values of each list, shape (lists,)."""
        return np.diff(self.offsets)

    @property
    def event(self) -> Integers:
        """The index of each value's list, shape (values,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def nbytes(self) -> int:
        """Bytes of values and offsets."""
        return int(self.values.nbytes + self.offsets.nbytes)

    def like(self, values: Any) -> Ragged:
        """Return other values in the same lists."""
        return Ragged(values, self.offsets)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Ragged:
        """Select values by a mask of shape (values,)."""
        before = np.concatenate([[0], np.cumsum(chosen)])
        if not isinstance(self.values, Ragged):
            return Ragged(self.values[chosen], before[self.offsets])
        lengths = self.values.lengths
        inner = self.values.where(np.repeat(chosen, lengths)).values
        edges = np.concatenate([[0], np.cumsum(lengths[chosen])])
        return Ragged(Ragged(inner, edges), before[self.offsets])

    def padded(self, length: int, fill: float = 0) -> Array:
        """Return the first values of each list, shape (lists, length), padded with ``fill``."""
        padded = aligned((len(self), length), self.values.dtype)
        padded.fill(fill)
        edges = self.offsets.tolist()
        for row, start, stop in zip(padded, edges, edges[1:], strict=False):
            size = min(stop - start, length)
            row[:size] = self.values[start : start + size]
        return padded

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or "out" in options:
            return NotImplemented
        for one in inputs:
            if isinstance(one, Ragged):
                same = one.offsets is self.offsets or np.array_equal(one.offsets, self.offsets)
                if not same:
                    raise ValueError("the lists of the columns differ in length")
            elif np.ndim(one):
                return NotImplemented  # ambiguous: one number per event, or per value
        values = ufunc(*(one.values if isinstance(one, Ragged) else one for one in inputs), **options)
        return tuple(map(self.like, values)) if isinstance(values, tuple) else self.like(values)


def aligned(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an uninitialised array whose address is a multiple of :data:`ALIGNMENT`."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    allocate = ALLOCATE.get()
    memory = allocate(size + ALIGNMENT) if allocate else np.empty(size + ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % ALIGNMENT
    return memory[first : first + size].view(dtype).reshape(shape)


def joined(arrays: Sequence[Any]) -> Any:
    """Concatenate arrays or ``Ragged`` arrays; a single one is not copied. Integers remain integers.

    Raises
    ------
    ValueError
        For integers that no type of 64 bits holds together.
    """
    if len(arrays) == 1:
        return arrays[0]
    if isinstance(arrays[0], Ragged):
        lengths = np.concatenate([array.lengths for array in arrays])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Ragged(joined([array.values for array in arrays]), offsets)
    kind = _common_dtype(arrays)
    if kind.hasobject:
        return np.concatenate(arrays)
    return np.concatenate(arrays, out=aligned(sum(map(len, arrays)), kind), casting="unsafe")


def _common_dtype(arrays: Sequence[Array]) -> np.dtype[Any]:
    """NumPy's type for all arrays, but for int64 and uint64, which it would convert to floats."""
    kind = np.result_type(*arrays)
    if kind.kind != "f" or any(array.dtype.kind not in "iu" for array in arrays):
        return kind
    filled = [array for array in arrays if len(array)]
    lowest = min((int(array.min()) for array in filled), default=0)
    highest = max((int(array.max()) for array in filled), default=0)
    for candidate in (np.int64, np.uint64):
        if np.iinfo(candidate).min <= lowest and highest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    raise ValueError(f"ids from {lowest} to {highest} fit into no integers of 64 bits")


def from_arrow(column: Any) -> Any:
    """Return a column of an arrow table: ``Ragged`` for lists, else an array; copied only if arrow needs to.

    Parameters
    ----------
    column : pyarrow.ChunkedArray or pyarrow.Array
        Numbers, booleans, times or text, lists of them, or lists of lists.

    Raises
    ------
    ValueError
        For a column with nulls, as withheld truth is, and for values that are no numbers to NumPy, such as
        records.
    """
    if isinstance(column, pa.ChunkedArray):
        column = as_type(column, plain_type(column.type))
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of a release that gives one with no chunk
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.null_count:
        raise ValueError("has nulls: it may be withheld")
    if not is_list(column.type):
        return _array(column)
    column = as_type(pa.chunked_array([column]), plain_type(column.type)).chunk(0)
    offsets = column.offsets.to_numpy().astype(np.int64)
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return Ragged(from_arrow(values), offsets - offsets[0])


def _array(column: Any) -> Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_null(kind):  # without any value
        return np.empty(0, np.float64)
    if pa.types.is_nested(kind) or pa.types.is_decimal(kind):
        raise ValueError(f"holds {kind}: store numbers, or one column for each field of a record")
    array: Array = column.to_numpy(zero_copy_only=False)
    return array


def columns(table: pa.Table) -> dict[str, Any]:
    """Return the columns of a dataset table, as :func:`~collidium.datasets.load` gives it, by name.

    Examples
    --------
    >>> columns(pa.table({"event_id": [7, 8], "x": [[0.5, 1.5], []]}))["x"].offsets.tolist()
    [0, 2, 2]
    """
    found = {}
    for name in table.column_names:
        try:
            found[name] = from_arrow(table.column(name))
        except ValueError as error:
            raise ValueError(f"column {name} {error}") from None
    return found
