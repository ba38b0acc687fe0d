"""The hosted format: names of files, and schemas, one row per event; ``schemas.toml`` lists the columns."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa


def folder(config: str, table: str) -> str:
    """The folder of a table's shards in the hosted layout."""
    return f"data/{config}_{table}"


def shard_name(number: int, count: int, stem: str = "train") -> str:
    """The file name of a shard: ``train-00000-of-00010.parquet``."""
    return f"{stem}-{number:05}-of-{count:05}.parquet"


def events_per_shard(pileup: int) -> int:
    """The number of events in a shard, which keeps shards at some hundred MB. The last one may have fewer."""
    return 100 if pileup >= 100 else 1000


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    fields = []
    for name, column in columns.items():
        kind, _, unit = column.partition(" ")
        plain: Any = kind.removeprefix("list<").removesuffix(">")
        inner: pa.DataType = pa.type_for_alias(plain)
        kept = inner if kind == plain else pa.list_(inner)
        fields.append(pa.field(name, pa.list_(kept), metadata={"unit": unit} if unit else None))
    return pa.schema([pa.field("event_id", pa.uint32(), nullable=False), *fields])


_TABLES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    table: _schema(columns) for table, columns in _TABLES["hosted"].items()
}
#: The tables of the built-in pipeline, hosted columns first. SCHEMAS stays what hosted files have.
EXTENDED: Final[Mapping[str, pa.Schema]] = {
    **SCHEMAS,
    **{
        table: _schema(_TABLES["hosted"].get(table, {}) | columns)
        for table, columns in _TABLES["added"].items()
    },
}


def without_notes(schema: pa.Schema) -> pa.Schema:
    """Keep only names, types and units. Other metadata may reveal how events were made."""
    fields = []
    for field in schema:
        unit = (field.metadata or {}).get(b"unit")
        plain = field.remove_metadata()
        fields.append(plain if unit is None else plain.with_metadata({b"unit": unit}))
    return pa.schema(fields)


_POSITION: Final = {"x": ("x", "tx"), "y": ("y", "ty"), "z": ("z", "tz")}

#: Table -> canonical name of a column -> its names in releases, the preferred one first.
ALIASES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "tracker_hits": {**_POSITION, "particle_id": ("particle_id", "majority_particle_id")},
    "calo_hits": _POSITION,
    "particles": {"particle_id": ("particle_id", "majority_particle_id")},
    "tracks": {"majority_particle_id": ("majority_particle_id", "particle_id")},
}


def canonical(table: str, stored: Sequence[str]) -> dict[str, str]:
    """Map canonical names to the ``stored`` names of a file's columns, in the order of the file.

    If several stored columns have the same canonical name, the preferred one is chosen.
    """
    aliases = ALIASES.get(table, {})
    meaning = {alias: name for name, names in aliases.items() for alias in names}
    chosen: dict[str, str] = {}
    for column in stored:
        name = meaning.get(column, column)
        if name not in chosen or column == next(alias for alias in aliases[name] if alias in stored):
            chosen[name] = column
    return chosen
