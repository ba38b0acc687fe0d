"""The order in which public values of an event are written; tables in, tables out.

The order of a list would reveal truth, because detector simulations write hits particle by particle:
what stays is sorted by the values that are public, and hit ids are renumbered in that order. Equal values are
put in an order that follows from what is withheld, through a hash: it cannot be guessed without the truth,
and is the same whenever the same events are published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, lengths_of
from collidium.datasets.publishing.public_part import PUBLIC, refuse_without_truth, withheld_columns
from collidium.errors import UnusableDataset

#: Numbers of rows within an event, renumbered where rows are reordered.
_NUMBERS: Final = frozenset({"hit_id", "track_id", "jet_id"})
#: Columns that name hits: the table of these, and whether they are a set, whose order has no meaning.
_NAMING: Final = {
    ("tracks", "hit_ids"): ("tracker_hits", False),
    ("jets", "constituents"): ("calo_hits", True),
}


def in_public_order(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Tables of the same events with every list in an order that public values and a secret hash decide.

    Hits are renumbered, and tracks and jets refer to them by their new numbers. Raises UnusableDataset where
    there is no truth to withhold, or where that cannot be done.
    """
    for name, table in tables.items():
        refuse_without_truth(name, table)
    secrets = _secrets(tables)
    made, orders = {}, {}
    for name, table in tables.items():
        order = _order(name, table, secrets)
        if order is None:
            made[name] = table
        else:
            made[name] = _numbered(_taken(table, order))
            orders[name] = order
    for (name, column), (named, is_set) in _NAMING.items():
        if named in orders and column in tables.get(name, pa.table({})).column_names:
            renaming = _Renaming(tables[named], orders[named])
            made[name] = renaming.applied(made[name], name, column, is_set=is_set)
    return made


# -- order ----------------------------------------------------------------------------------------------


def _order(name: str, table: pa.Table, secrets: Sequence[bytes]) -> npt.NDArray[np.int64] | None:
    """Rows of the flattened lists, event by event in their public order; None where nothing is public."""
    public = [column for column in PUBLIC.get(name, ()) if column in table.column_names]
    keys = [column for column in public if column not in _NUMBERS and _is_flat(table, column)]
    if not keys:
        return None
    edges = _edges(table.column(keys[0]))
    values = [_values(table, name, column, edges) for column in keys]
    order = np.empty(edges[-1], np.int64)
    for secret, start, stop in zip(secrets, edges[:-1], edges[1:], strict=True):
        seed = hashlib.sha256(secret + name.encode()).digest()
        chance = np.random.default_rng(np.frombuffer(seed, np.uint32)).permutation(stop - start)
        sorting = np.lexsort([column[start:stop][chance] for column in reversed(values)])
        order[start:stop] = start + chance[sorting]
    return order


def _secrets(tables: Mapping[str, pa.Table]) -> list[bytes]:
    """For each event a hash of all that is withheld of it."""
    withheld = [
        table.column(column)
        for name, table in sorted(tables.items())
        for column in sorted(withheld_columns(name, table.column_names))
    ]
    events = next(iter(tables.values())).num_rows
    return [_hash_of([column.slice(row, 1) for column in withheld]) for row in range(events)]


def _hash_of(columns: Sequence[pa.ChunkedArray[Any]]) -> bytes:
    digest = hashlib.sha256()
    for values in columns:
        flat: Any = values
        while is_list(flat.type):
            flat = _flat(flat)
        plain = pa.types.is_primitive(flat.type)
        digest.update(np.asarray(flat).tobytes() if plain else repr(flat.to_pylist()).encode())
    return digest.digest()


def _taken(table: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
    """The table with the elements of every list in the order given."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        if not is_list(column.type):
            columns[name] = column
            continue
        flat = _flat(column)
        if len(flat) != len(order):
            raise UnusableDataset(f"column {name} has lists of other lengths than the other columns")
        columns[name] = _lists(_edges(column), flat.take(pa.array(order))).cast(column.type)
    return pa.table(columns, schema=table.schema)


def _numbered(table: pa.Table) -> pa.Table:
    """The table with new ids of its rows, where it has any: their places."""
    for name in _NUMBERS & set(table.column_names):
        index = table.schema.get_field_index(name)
        field = table.schema.field(index)
        edges = _edges(table.column(name))
        places = np.arange(edges[-1]) - np.repeat(edges[:-1], np.diff(edges))
        table = table.set_column(index, field, _lists(edges, pa.array(places)).cast(field.type))
    return table


class _Renaming:
    """Old ids of hits to new ones."""

    def __init__(self, hits: pa.Table, order: npt.NDArray[np.int64]) -> None:
        """``hits`` as they were, and the ``order`` into which they were brought."""
        column = hits.column("hit_id" if "hit_id" in hits.column_names else "x")
        self._edges = _edges(column)
        places = np.arange(len(order)) - np.repeat(self._edges[:-1], np.diff(self._edges))
        self._old = np.asarray(_flat(column)).astype(np.int64) if "hit_id" in hits.column_names else places
        self._new = np.empty(len(order), np.int64)
        self._new[order] = places

    def applied(self, table: pa.Table, name: str, column: str, *, is_set: bool) -> pa.Table:
        """Table ``name`` with new ids in ``column``, lists of lists; those of a set rise."""
        index = table.schema.get_field_index(column)
        field = table.schema.field(index)
        per_row = _flat(table.column(column))
        edges, hit_edges = _edges(table.column(column)), _edges(per_row)
        ids = np.asarray(_flat(per_row)).astype(np.int64)
        for row in range(table.num_rows):
            rows = slice(hit_edges[edges[row]], hit_edges[edges[row + 1]])
            renamed = self._renamed(row, ids[rows])
            if renamed is None:
                event = table.column("event_id")[row]
                raise UnusableDataset(
                    f"table {name}, column {column}: names hits that event {event} does not have"
                )
            ids[rows] = renamed
        if is_set:
            ids = ids[np.lexsort((ids, np.repeat(np.arange(len(hit_edges) - 1), np.diff(hit_edges))))]
        inner = _lists(hit_edges, pa.array(ids))
        return table.set_column(index, field, _lists(edges, inner).cast(field.type))

    def _renamed(self, row: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """The new ids of these hits; None where the event does not have all of them."""
        hits = slice(self._edges[row], self._edges[row + 1])
        sorting = np.argsort(self._old[hits], kind="stable")
        known = self._old[hits][sorting]
        places = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
        if len(ids) and (not len(known) or np.any(known[places] != ids)):
            return None
        return self._new[hits][sorting][places]


# -- lists ----------------------------------------------------------------------------------------------


def _is_flat(table: pa.Table, column: str) -> bool:
    kind = table.schema.field(column).type
    return is_list(kind) and not pa.types.is_nested(kind.value_type)


def _values(table: pa.Table, name: str, column: str, edges: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    lists = table.column(column)
    flat = _flat(lists)
    if flat.null_count or lists.null_count or not np.array_equal(_edges(lists), edges):
        raise UnusableDataset(f"table {name}, column {column}: has nulls, or lists of other lengths")
    return np.asarray(flat)


def _flat(column: Any) -> Any:
    flat = pc.list_flatten(column)
    return flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat


def _edges(column: Any) -> npt.NDArray[np.int64]:
    """Where each list begins among the elements of all, and the end; a null list is empty."""
    return np.concatenate([[0], np.cumsum(lengths_of(column))])


def _lists(edges: npt.NDArray[np.int64], flat: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array(edges, pa.int32()), flat)
