"""Where the shards of a table lie: pure functions over the paths of a directory or repository.

Three layouts are read::

    data/<config>_<table>/train-00000-of-00010.parquet     the one that is written
    data/<config>/<table>-00000-of-00010.parquet           older
    <table>.parquet                                        a few events in one directory, of any config

The leading ``data/`` may be absent. A config is named ``<channel>_<pileup>``, for example ``ttbar_pu200``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from collidium.errors import UnusableDataset

_CONFIG = re.compile(r"(?P<config>.+_pu\d+)(?:_(?P<table>.+))?")


def configs(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The configs that ``paths`` hold, each with the names of its tables, sorted."""
    found: dict[str, set[str]] = {}
    for parts in map(_parts, paths):
        match = _CONFIG.fullmatch(parts[0]) if len(parts) > 1 else None
        if match:
            table = match["table"] or _table_of(parts[1:])
            found.setdefault(match["config"], set()).add(table)
    return {config: tuple(sorted(tables)) for config, tables in sorted(found.items())}


def shards(paths: Iterable[str], table: str, config: str | None = None) -> list[str]:
    """The paths that hold ``table`` of ``config``, sorted; without ``config`` there must be only one.

    Raises :class:`~collidium.errors.UnusableDataset` when there are none, or when several configs hold it.
    """
    by_config: dict[str, list[str]] = {}
    for path in paths:
        owner = _owner(path, table)
        if owner is not None and (config in (None, owner) or owner == ""):
            by_config.setdefault(owner, []).append(path)
    where = f" in config {config}" if config else ""
    if not by_config:
        raise UnusableDataset(f"there are no parquet files of table {table}{where}")
    if len(by_config) > 1:
        raise UnusableDataset(
            f"table {table} is there in several configs, choose one of: {', '.join(sorted(by_config))}"
        )
    return sorted(next(iter(by_config.values())))


def _owner(path: str, table: str) -> str | None:
    """The config (empty for the layout without) whose ``table`` the file at ``path`` belongs to."""
    parts = _parts(path)
    if not parts[-1].endswith(".parquet"):
        return None
    if len(parts) == 1:
        return "" if parts[0] == f"{table}.parquet" else None
    match = _CONFIG.fullmatch(parts[0])
    if match and match["table"]:
        return match["config"] if match["table"] == table else None
    if not match and parts[0].endswith(f"_{table}"):
        return parts[0].removesuffix(f"_{table}")
    return parts[0] if _table_of(parts[1:]) == table else None


def _table_of(parts: tuple[str, ...]) -> str:
    """The table a file of the older layout belongs to: its folder, or its name without a shard number."""
    *folders, name = parts
    return folders[0] if folders else re.sub(r"([-_.]\d+(-of-\d+)?)*\.parquet$", "", name)


def _parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    return parts[1:] if len(parts) > 1 and parts[0] == "data" else parts
