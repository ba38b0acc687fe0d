"""Events as tables in memory: fetched if need be, without reading what is not asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, Unpack, get_args, overload

import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.access import Events, Fetched, Source, download, event_range
from collidium.datasets.reading.dataset import refuse_missing
from collidium.datasets.reading.flattening import PLACES, flat
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
    """Events of a dataset on a hub or in a directory, in memory; a hub's shards are downloaded if need be.

    ``config`` may be left out where there is only one. One table by its name gives a table; a list of names,
    or None for all, gives a mapping of tables by name. A table has one row per event, sorted by event, with
    a list over all hits, particles or tracks in each other column; ``rows="flat"`` has one row for each of
    them (:func:`~collidium.datasets.flat`). Lengths are in mm, energies and momenta in GeV, times in ns,
    angles in rad, charges in e. Columns have their canonical names whatever the release calls them;
    ``columns`` reads those alone, and what tells rows apart. ``to`` gives frames of polars or pandas, or
    arrays of awkward.

    Raises what :func:`~collidium.datasets.download` raises, UnusableDataset for a column that is not there
    and for events that are missing, InvalidInput for arguments that contradict themselves, and ImportError
    where what ``to`` names is not installed.
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
    if to == "polars":
        return library.from_arrow(table)
    if to == "awkward":
        return library.from_arrow(table)
    return table.to_pandas()
