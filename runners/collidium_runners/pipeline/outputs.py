"""From the folders that the parts of a job wrote to the shards of its tables."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collidium.contracts.runner import RunnerRefused

_FILE: Final = re.compile(r"(?P<table>[A-Za-z0-9_][A-Za-z0-9_.-]*?)(-\d{5}-of-\d{5})?\.parquet", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of one part, and its name as a shard of its table in the whole output."""

    part: int
    file: str
    name: str


def shards(listings: Sequence[Collection[str] | None]) -> list[Shard]:
    """Name the files of all parts; ``listings`` are the file names in each part's folder, None without one.

    A table is ``<table>.parquet`` in a part, or shards of it. In the whole it is one file
    ``<table>.parquet`` if there is one, else shards in the order of the parts. Files that are no tables are
    left out. Raises :class:`~collidium.contracts.runner.RunnerRefused` when a part is missing, has no table,
    or has other tables than the first.
    """
    tables: dict[str, list[tuple[int, str]]] = {}
    for part, listing in enumerate(listings):
        if listing is None:
            raise RunnerRefused(f"the output of part {part} of {len(listings)} is missing")
        of_part = _tables(listing)
        if not of_part or (part > 0 and of_part.keys() != tables.keys()):
            raise RunnerRefused(
                f"part {part} of {len(listings)} wrote the tables {_told(of_part)}, part 0 {_told(tables)}"
            )
        for table, names in of_part.items():
            tables.setdefault(table, []).extend((part, name) for name in names)
    return [
        Shard(part, file, _shard_name(table, number, len(found)))
        for table, found in sorted(tables.items())
        for number, (part, file) in enumerate(found)
    ]


def gather(source: Path, count: int, directory: Path) -> list[Path]:
    """Write the output of parts ``source/0`` to ``source/<count - 1>`` below ``directory``; return its files.

    Blocks on the disk. Raises as :func:`shards` does.
    """
    named = shards([_listing(source / str(part)) for part in range(count)])
    directory.mkdir(parents=True, exist_ok=True)
    for shard in named:
        _place(source / str(shard.part) / shard.file, directory / shard.name)
    return [directory / shard.name for shard in named]


def _tables(listing: Collection[str]) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for name in sorted(listing):
        if match := _FILE.fullmatch(name):
            tables.setdefault(match["table"], []).append(name)
    return tables


def _told(tables: Collection[str]) -> str:
    return ", ".join(sorted(tables)) or "none"


def _shard_name(table: str, number: int, count: int) -> str:
    return f"{table}.parquet" if count == 1 else f"{table}-{number:05d}-of-{count:05d}.parquet"


def _listing(folder: Path) -> list[str] | None:
    try:
        # A link could lead anywhere on the server.
        return [entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return None


def _place(file: Path, target: Path) -> None:
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        os.link(file, unfinished)
    except OSError:  # another file system, or one without links
        shutil.copyfile(file, unfinished)
    unfinished.replace(target)
