"""Blinding: what is public of events that are scored.

Public columns are listed; all others are withheld, including unknown ones. The original order of lists would
reveal truth, because detector simulations write hits particle by particle. Lists are therefore sorted by
their public values, and hit ids are renumbered. Equal values are shuffled with a hash of the withheld values
as seed: the order is reproducible, but unknown without the truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, lengths_of
from collidium.errors import UnusableDataset

#: What a detector measures, and what is reconstructed from that alone, by canonical column names. The time of
#: a tracker hit is withheld: it is the exact time of the simulation.
PUBLIC: Final[Mapping[str, tuple[str, ...]]] = {
    "tracker_hits": (
        *("volume_id", "layer_id", "surface_id", "module_id", "cell_id", "detector"),
        *("x", "y", "z", "hit_id"),
    ),
    "calo_hits": ("detector", "cell_id", "x", "y", "z", "total_energy"),
    "tracks": ("theta", "phi", "qop", "d0", "z0", "track_id", "hit_ids"),
    "jets": ("pt", "eta", "phi", "mass", "jet_id", "constituents"),
    "particles": (),
}
#: The table of a mix with the channel of each event; it is not public.
CHANNELS: Final = "channels"
#: Table -> a column that must exist for truth to be withheld.
_TRUTH: Final = {"tracker_hits": "particle_id"}
#: Columns that number the rows of an event.
_NUMBERS: Final = frozenset({"hit_id", "track_id", "jet_id"})
#: Columns that refer to hits: the table of the hits, and whether the order of references has no meaning.
_REFERENCES: Final = {
    ("tracks", "hit_ids"): ("tracker_hits", False),
    ("jets", "constituents"): ("calo_hits", True),
}


def withheld_columns(table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return those of the canonical ``columns`` that are not public."""
    public = PUBLIC.get(table, ())
    return tuple(name for name in columns if name != "event_id" and name not in public)


def without_truth(table: str, events: pa.Table) -> pa.Table:
    """Replace all values that are not public by nulls. Columns have canonical names."""
    for name in withheld_columns(table, events.column_names):
        index = events.schema.get_field_index(name)
        field = events.schema.field(index)
        events = events.set_column(index, field, pa.nulls(events.num_rows, field.type))
    return events


def refuse_withheld(name: str, table: pa.Table) -> None:
    """Raise UnusableDataset if the truth of an event is withheld. Columns have canonical names."""
    columns = withheld_columns(name, table.column_names)
    if not columns:
        return
    gone = np.logical_and.reduce([np.asarray(pc.is_null(table.column(column))) for column in columns])
    if gone.any():
        event = table.column("event_id")[int(np.flatnonzero(gone)[0])]
        raise UnusableDataset(
            f"table {name}: event {event} has no {columns[0]}, as a benchmark's truth is withheld. Submit "
            "predictions for these events, and score on others here, such as the training events that "
            "`collidium tasks NAME` shows. Operators import what `collidium datasets publish --truth-output` "
            "wrote."
        )


def refuse_without_truth(name: str, table: pa.Table) -> None:
    """Raise UnusableDataset if a table has no truth to withhold. Columns have canonical names."""
    column = _TRUTH.get(name)
    if column is not None and (column not in table.column_names or table.column(column).null_count):
        raise UnusableDataset(f"table {name} has no truth to withhold there: column {column} is not filled")


# -- order ----------------------------------------------------------------------------------------------


def in_public_order(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Reorder every list by its public values, with ties in a secret order, and renumber hits.

    All tables have the same events. Tracks and jets refer to hits by their new numbers. Raises
    UnusableDataset if there is no truth to withhold, or lists or references are inconsistent.
    """
    for name, table in tables.items():
        refuse_without_truth(name, table)
    secrets = _secrets(tables)
    reordered, orders = dict(tables), {}
    for name, table in tables.items():
        with _named(name):
            order = _order(name, table, secrets)
            if order is not None:
                reordered[name] = _numbered(_taken(table, order))
                orders[name] = order
    for (name, column), (hits, is_set) in _REFERENCES.items():
        if hits in orders and column in tables.get(name, pa.table({})).column_names:
            with _named(f"{name}, column {column}"):
                renumbering = _Renumbering(tables[hits], orders[hits])
                reordered[name] = renumbering.apply(reordered[name], name, column, is_set=is_set)
    return reordered


@contextmanager
def _named(table: str) -> Iterator[None]:
    """Raise UnusableDataset for columns of other types than lists of numbers."""
    try:
        yield
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnusableDataset(f"table {table}: its rows cannot be put in public order: {error}") from error


def _order(name: str, table: pa.Table, secrets: Sequence[bytes]) -> npt.NDArray[np.int64] | None:
    """Indices into the flattened lists, event by event in public order; None if nothing is public."""
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
    """A hash of the withheld values of each event."""
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
    """Reorder the elements of every list."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        if not is_list(column.type) or column.null_count == len(column):  # withheld before
            columns[name] = column
            continue
        flat = _flat(column)
        if len(flat) != len(order):
            raise UnusableDataset(f"column {name} has lists of other lengths than the other columns")
        columns[name] = _lists(_edges(column), flat.take(pa.array(order))).cast(column.type)
    return pa.table(columns, schema=table.schema)


def _numbered(table: pa.Table) -> pa.Table:
    """Replace row ids, if there are any, by positions within the event."""
    for name in _NUMBERS & set(table.column_names):
        index = table.schema.get_field_index(name)
        field = table.schema.field(index)
        edges = _edges(table.column(name))
        places = np.arange(edges[-1]) - np.repeat(edges[:-1], np.diff(edges))
        table = table.set_column(index, field, _lists(edges, pa.array(places)).cast(field.type))
    return table


class _Renumbering:
    """Translates old ids of hits to new ones."""

    def __init__(self, hits: pa.Table, order: npt.NDArray[np.int64]) -> None:
        """``hits`` in their original order, and the new ``order``."""
        column = hits.column("hit_id" if "hit_id" in hits.column_names else "x")
        self._edges = _edges(column)
        places = np.arange(len(order)) - np.repeat(self._edges[:-1], np.diff(self._edges))
        self._old = np.asarray(_flat(column)).astype(np.int64) if "hit_id" in hits.column_names else places
        self._new = np.empty(len(order), np.int64)
        self._new[order] = places

    def apply(self, table: pa.Table, name: str, column: str, *, is_set: bool) -> pa.Table:
        """Replace ids in ``column``, which has lists of lists; the inner ones are sorted if they are sets."""
        index = table.schema.get_field_index(column)
        field = table.schema.field(index)
        per_row = _flat(table.column(column))
        edges, hit_edges = _edges(table.column(column)), _edges(per_row)
        ids = np.asarray(_flat(per_row)).astype(np.int64)
        for row in range(table.num_rows):
            rows = slice(hit_edges[edges[row]], hit_edges[edges[row + 1]])
            renumbered = self._new_ids(row, ids[rows])
            if renumbered is None:
                event = table.column("event_id")[row]
                raise UnusableDataset(
                    f"table {name}, column {column}: names hits that event {event} does not have"
                )
            ids[rows] = renumbered
        if is_set:
            ids = ids[np.lexsort((ids, np.repeat(np.arange(len(hit_edges) - 1), np.diff(hit_edges))))]
        inner = _lists(hit_edges, pa.array(ids))
        return table.set_column(index, field, _lists(edges, inner).cast(field.type))

    def _new_ids(self, row: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """The new ids of hits of an event; None if it lacks any of them."""
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
    """The offsets of lists in the flattened column; a null list is empty."""
    return np.concatenate([[0], np.cumsum(lengths_of(column))])


def _lists(edges: npt.NDArray[np.int64], flat: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array(edges, pa.int32()), flat)
