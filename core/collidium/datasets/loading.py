"""Loads events as tables in memory, downloaded if necessary; only requested columns are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, Unpack, get_args, overload

import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.access import Events, Fetched, Source, download, event_range
from collidium.datasets.reading.dataset import PLACES, flat, refuse_missing
from collidium.datasets.reading.shards import EventTable
from collidium.errors import InvalidInput
from collidium.hub.downloads import Progress

#: Canonical names of columns, of the one table that is loaded or by table.
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
    """Load events of a dataset, on a hub or in a directory, into memory.

    Shards of a hub are downloaded if necessary. Lengths are in mm, energies and momenta in GeV, times in ns,
    angles in rad, charges in e. Columns have their canonical names whatever the release calls them.

    Parameters
    ----------
    source, config, events, endpoint, revision, token, cache, progress
        As for :func:`~collidium.datasets.download`.
    tables
        The name of one table, a list of names, or None for all tables.
    columns
        Canonical names of the columns to read, for several tables by table. The columns that identify a row
        are read in any case.
    rows
        ``"events"``: one row per event, sorted by event, with a list over all hits, particles or tracks in
        each other column. ``"flat"``: one row for each of them (:func:`~collidium.datasets.flat`).
    to
        ``"arrow"``, ``"polars"``, ``"pandas"`` or ``"awkward"``.

    Returns
    -------
    pyarrow.Table, polars.DataFrame, pandas.DataFrame or awkward.Array
        For one table by its name; a dict of them by table otherwise.

    Raises
    ------
    UnusableDataset
        For a column or events that are missing.
    InvalidInput
        For arguments that contradict each other.
    ImportError
        Where the library that ``to`` names is not installed.
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
    of_tables = _columns_of(columns, tables)
    wanted = event_range(events)
    fetched = download(
        source,
        config,
        tables,
        wanted,
        cache=cache,
        endpoint=endpoint,
        revision=revision,
        token=token,
        progress=progress,
    )
    if isinstance(tables, str):
        return convert(_load(fetched, tables, wanted, of_tables.get(tables), rows), to)
    return {
        name: convert(_load(fetched, name, wanted, of_tables.get(name), rows), to) for name in fetched.shards
    }


def _load(
    fetched: Fetched, name: str, events: EventRange | None, columns: Sequence[str] | None, rows: str
) -> pa.Table:
    table = EventTable(name, [fetched.directory / path for path in fetched.shards[name]])
    if events is not None:
        refuse_missing(table, events)
    if rows == "events":
        return table.load(events, columns)
    if rows != "flat":
        raise InvalidInput(f'rows is "events" or "flat", not {rows!r}')
    return _load_flat(table, events, columns)


def _load_flat(table: EventTable, events: EventRange | None, columns: Sequence[str] | None) -> pa.Table:
    """One row per hit, particle or track, with the columns that identify it in any case."""
    if columns is None:
        return flat(table.load(events), table.name)
    place = PLACES.get(table.name)
    own = [place] if place in table.columns else []
    wanted = list(dict.fromkeys([*own, *(name for name in columns if name != place)]))
    # The place in the list takes a list.
    stored = wanted or [name for name in table.columns if name != "event_id"][:1]
    loaded = flat(table.load(events, stored), table.name)
    return loaded.select(list(dict.fromkeys(["event_id", *([place] if place else []), *wanted])))


def _columns_of(columns: Columns, tables: str | Sequence[str] | None) -> Mapping[str, Sequence[str]]:
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
    """The table as a ``polars.DataFrame``, a ``pandas.DataFrame`` or an ``awkward.Array``, or as it is.

    Raises InvalidInput for anything else, and ImportError where the library is not installed.
    """
    if to == "arrow":
        return table
    if to not in FRAMES:
        raise InvalidInput(f"tables are given as {', '.join(FRAMES)}, not as {to!r}")
    try:
        library: Any = import_module(to)
    except ImportError as error:
        raise ImportError(f"to={to!r} needs {to}: pip install {to}", name=to) from error
    return table.to_pandas() if to == "pandas" else library.from_arrow(table)
