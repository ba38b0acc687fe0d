"""Converts tables of events to inputs of a graph, and its outputs to predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.model import ModelInterface
from collidium.contracts.tables import positions_in_event
from collidium.contracts.task import Card, Tables
from collidium.errors import UnusableDataset
from collidium.inference.manifest import Input, Manifest
from collidium.inference.messages import Code, ModelRefused
from collidium.inference.sandbox import CallBatch
from collidium.physics.ragged import Ragged, from_arrow

#: Maximum bytes of the inputs of a batch of several events.
BATCH_BYTES: Final = 32 * 1024**2
#: Maximum bytes of the inputs of an event: a manifest may repeat columns, and pad lists to any length.
EVENT_BYTES: Final = 256 * 1024**2
#: Upper limit of track ids in an event, by which ids of different events differ.
IDS_PER_EVENT: Final = 2**20

Integers = npt.NDArray[np.int64]


class Inputs:
    """The inputs of a manifest for a block of events.

    Parameters
    ----------
    manifest, interface
        The inputs of the model and of the task.
    tables : mapping of str to pyarrow.Table
        One row per event, the same events in the same order.
    one_event : bool
        Make batches of one event even if the manifest allows more.

    Raises
    ------
    UnusableDataset
        If a column is missing or has nulls.
    ModelRefused
        If the inputs of an event are larger than :data:`EVENT_BYTES`.
    """

    def __init__(
        self, manifest: Manifest, interface: ModelInterface, tables: Tables, *, one_event: bool = False
    ) -> None:
        self._one_event = one_event or manifest.batch == "event"
        self._manifest = manifest
        self._tables = tables
        self.event_ids: Integers = np.asarray(next(iter(tables.values())).column("event_id")).astype(np.int64)
        #: Number of predicted rows of each event.
        self.rows = self._rows(interface)
        self._edges = np.concatenate([[0], np.cumsum(self.rows)])
        features = {given.feature for given in manifest.inputs.values()} - {""}
        self._features = {name: interface.features[name].compute(tables) for name in features}
        self._columns: dict[tuple[str, str], Ragged] = {}
        for given in manifest.inputs.values():
            if not given.feature:
                column = given.column or interface.inputs[given.table][0]
                self._columns[given.table, given.column] = self._column(given.table, column)
        self._size = self._bytes_per_event()
        if self._size.max(initial=0) > EVENT_BYTES:
            raise ModelRefused(Code.MEMORY, f"inputs of an event have more than {EVENT_BYTES:,} bytes")

    def batches(self) -> Iterator[tuple[range, CallBatch]]:
        """Yield batches of one or several events, as the manifest requests, with the indices of events."""
        for events in self._ranges():
            yield events, self.batch(events)

    def batch(self, events: range) -> CallBatch:
        """The inputs of consecutive events, by index."""
        start, stop = int(self._edges[events.start]), int(self._edges[events.stop])
        return CallBatch(
            stop - start, [self._array(given, events) for given in self._manifest.inputs.values()]
        )

    def _ranges(self) -> Iterator[range]:
        if self._one_event:
            yield from (range(event, event + 1) for event in range(len(self.event_ids)))
            return
        size, start = self._size, 0
        for event in range(1, len(size) + 1):
            if event == len(size) or size[start : event + 1].sum() > BATCH_BYTES:
                yield range(start, event)
                start = event

    def _bytes_per_event(self) -> npt.NDArray[np.float64]:
        size = np.zeros(len(self.event_ids))
        for given in self._manifest.inputs.values():
            width = np.dtype(given.dtype).itemsize
            if given.feature:
                values = self._features[given.feature]
                size += self.rows * (width * values[:1].size)
                continue
            column = self._columns[given.table, given.column]
            if given.padded:  # one list per event, or per row of the table
                size += width * given.padded * (column.lengths if isinstance(column.values, Ragged) else 1)
            elif isinstance(column.values, Ragged):
                size += width * np.diff(column.values.offsets[column.offsets])
            else:
                size += width * column.lengths
        return size

    def _rows(self, interface: ModelInterface) -> Integers:
        if interface.rows is None:
            return np.ones(len(self.event_ids), np.int64)
        column = (interface.key[1] if interface.key else "", *interface.inputs[interface.rows])
        names = self._tables[interface.rows].column_names
        return self._column(interface.rows, next(name for name in column if name in names)).lengths

    def _column(self, table: str, name: str) -> Ragged:
        if name not in self._tables[table].column_names:
            raise UnusableDataset(f"table {table} has no column {name}, which the model reads")
        try:
            column: Ragged = from_arrow(self._tables[table].column(name))
        except ValueError as error:
            raise UnusableDataset(f"table {table}: column {name} {error}") from None
        return column

    def _array(self, given: Input, events: range) -> npt.NDArray[Any]:
        dtype = np.dtype(given.dtype)
        if given.feature:
            rows = slice(int(self._edges[events.start]), int(self._edges[events.stop]))
            return self._features[given.feature][rows].astype(dtype, copy=False)
        lists: Ragged = self._columns[given.table, given.column][events.start : events.stop]
        if isinstance(lists.values, Ragged):  # the inner lists
            lists = lists.values
        if given.kind == "row_splits":
            return lists.offsets
        if given.kind == "segment":
            return lists.event
        if given.kind == "mask":
            return np.arange(given.padded) < lists.lengths[:, None]
        values = lists.padded(given.padded) if given.kind == "padded" else lists.values
        return np.asarray(values).astype(dtype, copy=False)


class Outputs:
    """Converts the outputs of a block's batches to predictions.

    Parameters
    ----------
    inputs
        The inputs of the block.
    manifest, interface, card
        The outputs of the model, and the columns of the task with their bounds.
    measured : mapping of str to int or array of float, shape (events,)
        ``parameters`` and ``seconds``, for columns that the platform fills in.
    """

    def __init__(
        self,
        inputs: Inputs,
        manifest: Manifest,
        interface: ModelInterface,
        card: Card,
        measured: Mapping[str, Any],
    ) -> None:
        self._inputs = inputs
        self._manifest = manifest
        self._interface = interface
        self._card = card
        self._measured = measured

    def table(self, tables: Tables, outputs: Sequence[Sequence[npt.NDArray[Any]]]) -> pa.Table:
        """Return the predictions, one row per predicted row of the inputs. Raises ModelRefused."""
        rows = self._inputs.rows
        events = np.repeat(self._inputs.event_ids, rows)
        columns: dict[str, Any] = {"event_id": events}
        if self._interface.key:
            name, source = self._interface.key
            keys = tables[self._interface.rows or ""]
            has_keys = source in keys.column_names
            columns[name] = from_arrow(keys.column(source)).values if has_keys else positions_in_event(rows)
        columns |= self._predicted(outputs)
        for name in self._interface.ids:
            columns[name] = _unique_ids(columns[name], rows, self._inputs.event_ids)
        for column, what in self._interface.measured.items():
            value = self._measured[what]
            columns[column] = np.full(len(events), value) if np.ndim(value) == 0 else np.repeat(value, rows)
        return pa.table({name: columns[name] for name in self._card.column_names})

    def _predicted(self, outputs: Sequence[Sequence[npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
        joined = [np.concatenate(parts) for parts in zip(*outputs, strict=True)]
        names = [*self._manifest.outputs.values(), *([("track_id",)] if self._manifest.postprocess else [])]
        found = {}
        for array, columns in zip(joined, names, strict=True):
            for number, name in enumerate(columns):
                values = array.reshape(len(array), -1)[:, number]
                bounds = next(column.bounds for column in self._card.columns if column.name == name)
                if not np.isfinite(values).all():
                    raise ModelRefused(Code.NOT_FINITE, name)
                if len(values) and not bounds[0] <= values.min() <= values.max() <= bounds[1]:
                    raise ModelRefused(Code.OUT_OF_BOUNDS, f"{name} is in {bounds[0]} to {bounds[1]}")
                found[name] = values.astype(np.float32) if values.dtype == np.float16 else values
        return found


#: -1 as an unsigned integer of 32 or 64 bits.
_WRAPPED: Final = (2**32 - 1, 2**64 - 1)


def _unique_ids(ids: npt.NDArray[Any], rows: Integers, event_ids: Integers) -> Integers:
    """Make ids of different events differ, and keep -1. Raises ModelRefused for other negative ids."""
    if len(ids) and (ids.min() < -1 or (ids.dtype.kind == "u" and int(ids.max()) in _WRAPPED)):
        raise ModelRefused(Code.OUT_OF_BOUNDS, "ids are 0 or more, or -1 for none")
    if len(ids) and ids.max() >= IDS_PER_EVENT:
        edges = np.cumsum(rows)[:-1]
        ids = np.concatenate([_dense(part) for part in np.split(ids, edges)])
    ids = ids.astype(np.int64)
    return np.where(ids < 0, -1, np.repeat(event_ids, rows) * IDS_PER_EVENT + ids)


def _dense(ids: npt.NDArray[Any]) -> Integers:
    numbered = np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.where(ids < 0, -1, numbered)
