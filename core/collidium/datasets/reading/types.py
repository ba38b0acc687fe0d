"""The types of a table's columns, which shards may have written in different ways, and of event ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import (
    UNREADABLE_INTEGERS,
    as_type,
    common_type,
    is_beyond_64_bits,
    is_list,
    plain_type,
)
from collidium.datasets.schemas import EXTENDED
from collidium.errors import UnusableDataset

#: Columns that only some releases have, which are numbered again when truth is withheld.
_OTHERS: Final[Mapping[str, pa.DataType]] = {"hit_id": pa.list_(pa.uint32())}

EventIds = npt.NDArray[np.int64]

#: The largest event id, so that the range of one event can be written in 64 bits.
MAX_EVENT_ID: Final = 2**63 - 2


def unified(table: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the columns of all shards of a table, each with one type.

    All lists are ``list``. Columns without values take the type of other shards, or of the hosted format. Ids
    that are floats in some shards are integers.

    Parameters
    ----------
    table
        The table's name.
    schemas
        The columns of each shard by its file name, with canonical names.

    Raises
    ------
    UnusableDataset
        If there is no type for the values of a column in all shards.
    """
    hosted = EXTENDED.get(table, pa.schema([]))
    found: dict[str, dict[str, pa.Field[Any]]] = {}
    for shard, schema in schemas.items():
        for field in schema:
            found.setdefault(field.name, {})[shard] = field
    fields = []
    for name, of_shards in found.items():
        kind = _kind(f"table {table}: column {name}", of_shards)
        known = hosted.field(name).type if name in hosted.names else _OTHERS.get(name)
        if known is not None and _is_better(known, kind, of_shards):
            kind = known
        first, *others = of_shards.values()
        nullable = len(of_shards) < len(schemas) or any(field.nullable for field in (first, *others))
        fields.append(first.with_type(kind).with_nullable(nullable))
    return pa.schema(fields).with_metadata(next(iter(schemas.values())).metadata or {})


def as_schema(rows: pa.Table, schema: pa.Schema, shard: str) -> pa.Table:
    """Convert rows of a shard to the columns and types of :func:`unified`; columns it lacks become null.

    Raises UnusableDataset for a value that the type of a column does not hold, with the shard's name.
    """
    columns: list[Any] = []
    for field in schema:
        try:
            columns.append(
                as_type(rows.column(field.name), field.type)
                if field.name in rows.column_names
                else pa.nulls(rows.num_rows, field.type)
            )
        except pa.ArrowException as error:
            raise UnusableDataset(
                f"{shard}: column {field.name} does not fit into {field.type}, which it needs with the other "
                f"shards: {error}"
            ) from error
    return pa.table(columns, schema=schema)


def _kind(column: str, of_shards: Mapping[str, pa.Field[Any]]) -> pa.DataType:
    first, kind = None, None
    for shard, field in of_shards.items():
        if first is None or kind is None:
            first, kind = shard, plain_type(field.type)
        elif (common := common_type(kind, field.type)) is not None:
            kind = common
        else:
            raise UnusableDataset(f"{column} is {kind} in {first}, but {field.type} in {shard}")
    return kind or pa.null()


def _is_better(hosted: pa.DataType, kind: pa.DataType, of_shards: Mapping[str, pa.Field[Any]]) -> bool:
    """Whether a column has no values, or has ids that only some shards write as floats."""
    element = _element(kind)
    if pa.types.is_null(element):
        return True
    return (
        pa.types.is_floating(element)
        and pa.types.is_integer(_element(hosted))
        and any(pa.types.is_integer(_element(field.type)) for field in of_shards.values())
    )


def _element(kind: pa.DataType) -> pa.DataType:
    inner: Any = kind
    while is_list(inner):
        inner = inner.value_type
    element: pa.DataType = inner
    return element


def only_records(schema: pa.Schema) -> str | None:
    """Return what is wrong with a table of which all columns but ``event_id`` hold records, or None."""
    columns = {field.name: _element(field.type) for field in schema if field.name != "event_id"}
    if not columns or not all(pa.types.is_struct(kind) or pa.types.is_map(kind) for kind in columns.values()):
        return None
    name, kind = next(iter(columns.items()))
    return (
        f"has only records, such as {kind} in column {name}: store each field of a record in a column of its "
        "own, of lists"
    )


def checked_ids(column: Any) -> EventIds:
    """Return event ids as int64. Raises ValueError for other types, nulls, and ids that no range contains."""
    if not pa.types.is_integer(column.type):
        raise ValueError(f"column event_id must hold integers, not {column.type}")
    if column.null_count:
        raise ValueError("column event_id has nulls")
    ids = np.asarray(column)
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) <= MAX_EVENT_ID:
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"column event_id holds {wrong}; event ids are from 0 to {MAX_EVENT_ID} (2^63 - 2)")
    return ids.astype(np.int64)


def why_unreadable(error: Exception) -> str:
    """Return what is wrong with a parquet file, in words that follow its name."""
    return UNREADABLE_INTEGERS if is_beyond_64_bits(error) else f"cannot be read as parquet: {error}"
