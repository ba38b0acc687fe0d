"""Layouts of datasets: finds configs, tables and shards by the paths of files.

Three layouts are read::

    data/<config>_<table>/train-00000-of-00010.parquet     the one that is written
    data/<config>/<table>-00000-of-00010.parquet           older
    <table>.parquet, <table>-00000-of-00002.parquet        directly in a directory, of any config

The leading ``data/`` is optional. A config is named ``<channel>_pu<pileup>``, for example ``ttbar_pu200``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from collidium.errors import UnusableDataset

_CONFIG = re.compile(r"(?P<config>.+_pu\d+)(?:_(?P<table>.+))?")

#: How to create tables that neither releases nor pipelines contain.
_MADE_BY: Final = {"channels": "`collidium datasets mix` makes one of several datasets"}


def configs(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the configs with their tables, both sorted. Tables in no folder have the config ``""``."""
    found: dict[str, set[str]] = {}
    for parts in map(_parts, paths):
        if not parts[-1].endswith(".parquet"):
            continue
        match = _CONFIG.fullmatch(parts[0]) if len(parts) > 1 else None
        if match:
            table = match["table"] or _table_of(parts[1:])
            found.setdefault(match["config"], set()).add(table)
        elif len(parts) == 1:
            found.setdefault("", set()).add(_table_of(parts))
    return {config: tuple(sorted(tables)) for config, tables in sorted(found.items())}


def choose(paths: Collection[str], config: str | None) -> str:
    """Return the named config, or the only one; ``""`` for files in no folder.

    Raises UnusableDataset that lists the existing configs.
    """
    there = configs(paths)
    if config is not None and config in there:
        return config
    if config is not None and "" in there:
        return ""
    if not there:
        raise UnusableDataset("there are no tables of events: no parquet files in any known layout")
    if config is not None:
        raise UnusableDataset(f"there is no config {config}; there are: {', '.join(there)}")
    if len(there) > 1:
        raise UnusableDataset(f"there are several configs, choose one of: {', '.join(map(_named, there))}")
    return next(iter(there))


def shards(paths: Collection[str], table: str, config: str | None = None) -> list[str]:
    """Return the sorted paths of a table's shards, of ``config`` or of the only config that has the table.

    Raises UnusableDataset if there are none, listing what exists, or if several configs have the table.
    """
    by_config: dict[str, list[str]] = {}
    for path in paths:
        owner = _owner(path, table)
        if owner is not None and (config in (None, owner) or owner == ""):
            by_config.setdefault(owner, []).append(path)
    if not by_config:
        raise UnusableDataset(_absent(configs(paths), table, config))
    if len(by_config) > 1:
        raise UnusableDataset(
            f"several configs have table {table}, choose one of: {', '.join(sorted(by_config))}"
        )
    return sorted(next(iter(by_config.values())))


def _absent(there: Mapping[str, Sequence[str]], table: str, config: str | None) -> str:
    """The error message for a missing table."""
    made = f" ({_MADE_BY[table]})" if table in _MADE_BY else ""
    message = f"there are no parquet files of table {table}{made}"
    if config and config not in there and there:
        return f"{message}: no config {config}; there are: {', '.join(map(_named, there))}"
    where = f" in config {config}" if config else ""
    known = [there[config]] if config and config in there else there.values()
    names = sorted({name for group in known for name in group})
    return f"{message}{where}; there are: {', '.join(names) or 'none at all'}"


def _named(config: str) -> str:
    return config or "tables without a config"


def _owner(path: str, table: str) -> str | None:
    """The config (``""`` for files in no folder) if the file at ``path`` belongs to the table, else None."""
    parts = _parts(path)
    if not parts[-1].endswith(".parquet"):
        return None
    if len(parts) == 1:
        return "" if _table_of(parts) == table else None
    match = _CONFIG.fullmatch(parts[0])
    if match and match["table"]:
        return match["config"] if match["table"] == table else None
    if not match and parts[0].endswith(f"_{table}"):
        return parts[0].removesuffix(f"_{table}")
    return parts[0] if _table_of(parts[1:]) == table else None


def _table_of(parts: tuple[str, ...]) -> str:
    """The table of a file in the older layout: its folder, or its name without the shard number."""
    *folders, name = parts
    return folders[0] if folders else re.sub(r"([-_.]\d+(-of-\d+)?)*\.parquet$", "", name)


def _parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    return parts[1:] if len(parts) > 1 and parts[0] == "data" else parts
