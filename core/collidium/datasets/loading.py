"""Loads events into memory as tables or data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, Unpack, get_args, overload

import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.access import Events, Fetched, Source, download, event_range
from collidium.datasets.reading.dataset import POSITION_COLUMNS, flat
from collidium.datasets.reading.shards import EventTable
from collidium.errors import InvalidInput
from collidium.runtime.progress import Progress

#: Canonical names of columns, by table if several tables are loaded.
Columns = Sequence[str] | Mapping[str, Sequence[str]] | None


class Options(TypedDict, total=False):
    """Keyword arguments of :func:`load`."""

    columns: Columns
    rows: Literal["events", "flat"]
    endpoint: str | None
    revision: str | None
    token: str | None
    cache: Path | None
    progress: Progress | None


@overload
def load(
    source: Source,
    config: str | None,
    tables: str,
    events: Events = None,
    *,
    to: Literal["arrow"] = "arrow",
    **options: Unpack[Options],
) -> pa.Table: ...
@overload
def load(
    source: Source,
    config: str | None = None,
    *,
    tables: str,
    events: Events = None,
    to: Literal["arrow"] = "arrow",
    **options: Unpack[Options],
) -> pa.Table: ...
@overload
def load(
    source: Source,
    config: str | None = None,
    tables: list[str] | tuple[str, ...] | None = None,
    events: Events = None,
    *,
    to: Literal["arrow"] = "arrow",
    **options: Unpack[Options],
) -> dict[str, pa.Table]: ...
@overload
def load(
    source: Source,
    config: str | None = None,
    tables: str | Sequence[str] | None = None,
    events: Events = None,
    *,
    to: Frame,
    **options: Unpack[Options],
) -> Any: ...
def load(
    source: Source,
    config: str | None = None,
    tables: str | Sequence[str] | None = None,
    events: Events = None,
    *,
    columns: Columns = None,
    rows: Literal["events", "flat"] = "events",
    to: Frame = "arrow",
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Any:
    """Load events of a dataset into memory, from a hub or a local directory.

    Shards of a hub are downloaded if necessary. Lengths are in mm, energies and momenta in GeV, times in ns,
    angles in rad, charges in e. Columns have their canonical names, whatever the release calls them.

    Parameters
    ----------
    source, config, events, endpoint, revision, token, cache, progress
        As for :func:`~collidium.datasets.download`.
    tables
        The name of one table, a list of names, or None for all tables.
    columns
        Canonical names of the columns to read, by table if there are several. The columns that identify a row
        are always read.
    rows
        ``"events"``: one row per event, sorted by event; other columns contain lists over all hits, particles
        or tracks. ``"flat"``: one row per hit, particle or track (:func:`~collidium.datasets.flat`).
    to
        ``"arrow"``, ``"polars"``, ``"pandas"`` or ``"awkward"``.

    Returns
    -------
    pyarrow.Table, polars.DataFrame, pandas.DataFrame or awkward.Array
        For a single table name; otherwise a dict of them by table.

    Raises
    ------
    UnusableDataset
        If a column or events are missing.
    InvalidInput
        If arguments contradict each other.
    ImportError
        If the library that ``to`` names is not installed.
    CollidiumError
        As :func:`~collidium.datasets.download`.

    Examples
    --------
    >>> from collidium import datasets
    >>> from collidium.demo import EVENTS_DIRECTORY
    >>> hits = datasets.load(EVENTS_DIRECTORY, tables="tracker_hits", events="0:2", columns=["x", "y"])
    >>> hits.column_names, hits.num_rows
    (['event_id', 'x', 'y'], 2)
    """
    of_tables = columns_by_table(columns, tables)
    wanted = event_range(events)
    access: Any = {"endpoint": endpoint, "revision": revision, "token": token}
    fetched = download(source, config, tables, wanted, cache=cache, progress=progress, **access)
    loaded = {
        name: convert(_load(fetched, name, wanted, of_tables.get(name), rows), to) for name in fetched.shards
    }
    return loaded[tables] if isinstance(tables, str) else loaded


def _load(
    fetched: Fetched, name: str, events: EventRange | None, columns: Sequence[str] | None, rows: str
) -> pa.Table:
    table = EventTable(name, [fetched.directory / path for path in fetched.shards[name]])
    if events is not None:
        table.refuse_missing(events)
    if rows == "events":
        return table.load(events, columns)
    if rows != "flat":
        raise InvalidInput(f'rows is "events" or "flat", not {rows!r}')
    return _load_flat(table, events, columns)


def _load_flat(table: EventTable, events: EventRange | None, columns: Sequence[str] | None) -> pa.Table:
    """Load one row per hit, particle or track, always with the columns that identify it."""
    if columns is None:
        return flat(table.load(events), table.name)
    position = POSITION_COLUMNS.get(table.name)
    own = [position] if position in table.columns else []
    wanted = list(dict.fromkeys([*own, *(name for name in columns if name != position)]))
    # Positions within the event are derived from any list.
    stored = wanted or [name for name in table.columns if name != "event_id"][:1]
    loaded = flat(table.load(events, stored), table.name)
    return loaded.select(list(dict.fromkeys(["event_id", *([position] if position else []), *wanted])))


def columns_by_table(columns: Columns, tables: str | Sequence[str] | None) -> Mapping[str, Sequence[str]]:
    """Return the requested columns by table. Raises InvalidInput."""
    if columns is None:
        return {}
    if isinstance(columns, Mapping):
        return columns
    if isinstance(columns, str):
        raise InvalidInput(f"columns is a list of names, not {columns!r}")
    if isinstance(tables, str):
        return {tables: columns}
    raise InvalidInput("for several tables columns are given by table: {'tracker_hits': ['x', 'y'], …}")


Frame = Literal["arrow", "polars", "pandas", "awkward"]

FRAMES: Final[tuple[Frame, ...]] = get_args(Frame)


def convert(table: pa.Table, to: Frame) -> Any:
    """Convert a table to one of :data:`FRAMES`.

    Raises InvalidInput for another format, and ImportError if the library is not installed.
    """
    if to == "arrow":
        return table
    if to not in FRAMES:
        raise InvalidInput(f"tables are given as {', '.join(FRAMES)}, not as {to!r}")
    try:
        library: Any = import_module(to)
    except ImportError as error:
        raise ImportError(f"to={to!r} needs {to}: pip install {to}", name=to) from error
    return _to_pandas(table, library) if to == "pandas" else library.from_arrow(table)


def _to_pandas(table: pa.Table, pandas: Any) -> Any:
    """Convert integers with nulls, such as withheld ids, to pandas' nullable ones instead of floats."""

    def nullable(kind: pa.DataType) -> Any:
        return pandas.api.types.pandas_dtype(str(kind).replace("uint", "UInt").replace("int", "Int"))

    frame = table.to_pandas(integer_object_nulls=True)
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = column.to_pandas(types_mapper=nullable)
    return frame
