"""``collidium datasets list``, ``tables`` and ``info``."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import check_environment
from collidium.cli.options import (
    config_option,
    hub_options,
    json_option,
    limit_option,
    locate_source,
    source_argument,
)
from collidium.cli.output import (
    ColumnSpec,
    json_wanted,
    moment,
    note,
    print_record,
    print_table,
    show_items,
    show_value,
)
from collidium.presentation.quantities import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collidium.datasets import ShardEntry, TableEntry
    from collidium.datasets.catalogue import Catalogue, ConfigEntry


@click.command("list")
@source_argument(required=False)
@limit_option("datasets", default=100)
@hub_options
@json_option
def list_(source: str | None, limit: int, hub: str | None, revision: str | None) -> None:
    """List the configs of SOURCE, or without it the datasets of the hub.

    \b
    collidium datasets list
    collidium datasets list alice/odd-ttbar
    collidium datasets list ./events
    """
    if source is None:
        _list_repositories(hub, limit)
        return
    from collidium.datasets import list_configs

    columns: dict[str, ColumnSpec] = {
        "config": "config",
        "tables": "tables",
        "shards": "shards",
        "size": lambda entry: size_text(entry.bytes),
    }
    found = list_configs(locate_source(source, hub, revision))
    show_items(found, columns)


def _list_repositories(hub: str | None, limit: int) -> None:
    from collidium.datasets import list_repositories
    from collidium.datasets.access import TAG

    check_environment()
    found = list_repositories(endpoint=hub, limit=limit)
    columns: dict[str, ColumnSpec] = {
        "dataset": lambda item: item["repo"],
        "last modified": lambda item: moment(item["last_modified"]),
        "private": lambda item: item["private"],
    }
    show_items(found, columns)
    if not found and not json_wanted():
        note(f"No dataset of the hub has the tag {TAG}. To list another dataset, give its NAMESPACE/NAME.")


@click.command()
@source_argument()
@config_option
@click.option("--shards", "show_shards", is_flag=True, help="Show each shard; --json always does.")
@hub_options
@json_option
def tables(source: str, config: str | None, show_shards: bool, hub: str | None, revision: str | None) -> None:
    """List the tables of a config of SOURCE, with their events and sizes. Reads only the files' footers.

    \b
    collidium datasets tables alice/odd-ttbar --config ttbar_pu0
    collidium datasets tables ./events --shards
    """
    from collidium.datasets import list_tables

    found = list_tables(locate_source(source, hub, revision), config)
    columns: dict[str, ColumnSpec] = {
        "config": "config",
        "table": "table",
        "shards": lambda entry: len(entry.shards),
        "size": lambda entry: size_text(entry.bytes),
        "events": "events",
        "range": _range,
    }
    if show_shards:
        show_value(found, _print_shards)
    else:
        show_items(found, columns)


def _print_shards(found: Sequence[TableEntry]) -> None:
    print_table(
        ("table", "shard", "size", "events", "range"),
        (
            (table.table, shard.path, size_text(shard.bytes), shard.events, _range(shard))
            for table in found
            for shard in table.shards
        ),
    )


def _range(entry: TableEntry | ShardEntry) -> str | None:
    if entry.first_event is None or entry.last_event is None:
        return None
    return f"{entry.first_event}:{entry.last_event + 1}"


@click.command()
@source_argument()
@config_option
@click.option("--table", metavar="NAME", help="Show the columns of this table.")
@hub_options
@json_option
def info(source: str, config: str | None, table: str | None, hub: str | None, revision: str | None) -> None:
    """Show revision, access and configs of SOURCE; with --table, the columns with their types and units.

    \b
    collidium datasets info alice/odd-ttbar
    collidium datasets info alice/odd-ttbar --config ttbar_pu0 --table tracker_hits
    """
    from collidium.datasets.access import catalogue

    place = locate_source(source, hub, revision)
    with catalogue(place) as found:
        if table is not None:
            headings = {name.replace("_", " "): itemgetter(name) for name in _COLUMN_FIELDS}
            show_items(_columns(found, config, table), headings)
            return
        about = _about(found, place)
        configs = found.configs()
    show_value({**about, "configs": configs}, lambda _: _print_about(about, configs))


_COLUMN_FIELDS: Final = ("column", "stored_as", "type", "unit")


def _about(found: Catalogue, place: object) -> dict[str, Any]:
    from collidium.datasets.catalogue import HubCatalogue

    if not isinstance(found, HubCatalogue):
        return {"directory": str(Path(str(place)).absolute())}
    repository = found.repository
    return {
        "repo": repository.repo,
        "hub": repository.endpoint,
        "commit": repository.commit,
        "private": repository.private,
        "gated": repository.gated,
        "last_modified": repository.last_modified,
        "tags": list(repository.tags),
    }


def _columns(found: Catalogue, config: str | None, table: str) -> list[dict[str, str | None]]:
    """Return the fields of each column: canonical name, stored name, type and unit."""
    from collidium.datasets.schemas import SCHEMAS, canonical

    (entry,) = found.tables(config, [table])
    units = {
        field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in SCHEMAS.get(table, ())
    }
    return [
        {"column": name, "stored_as": stored, "type": entry.columns[stored], "unit": units.get(name) or None}
        for name, stored in canonical(table, list(entry.columns)).items()
    ]


def _print_about(about: dict[str, Any], configs: list[ConfigEntry]) -> None:
    size = size_text(sum(entry.bytes for entry in configs))
    shown = {name.replace("_", " "): value for name, value in about.items()}
    if "last modified" in shown:
        shown["last modified"] = moment(shown["last modified"])
    print_record(shown | {"configs": [entry.config for entry in configs], "size": size})
