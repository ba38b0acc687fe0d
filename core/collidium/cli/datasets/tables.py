"""``collidium datasets tables``: the tables of a config and their shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.datasets.source import config_option, hub_options, place_of, source_argument
from collidium.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from collidium.datasets import ShardEntry, TableEntry


@click.command()
@source_argument()
@config_option
@click.option("--shards", "show_shards", is_flag=True, help="Show each shard; --json has them in any case.")
@hub_options
@json_option
def tables(
    source: str, config: str | None, show_shards: bool, hub: str | None, revision: str | None, as_json: bool
) -> None:
    """List the tables of a config of SOURCE, with their events and sizes. Only footers are read.

    \b
    collidium datasets tables alice/odd-ttbar --config ttbar_pu0
    collidium datasets tables ./events --shards
    """
    from collidium.datasets import list_tables
    from collidium.hub.downloads import size_text

    found = list_tables(place_of(source, hub, revision), config)
    if as_json:
        print_json(found)
    elif show_shards:
        print_table(
            ("table", "shard", "size", "events", "range"),
            (
                (table.table, shard.path, size_text(shard.bytes), shard.events, _range(shard))
                for table in found
                for shard in table.shards
            ),
        )
    else:
        print_table(
            ("config", "table", "shards", "size", "events", "range"),
            (
                (each.config, each.table, len(each.shards), size_text(each.bytes), each.events, _range(each))
                for each in found
            ),
        )


def _range(entry: TableEntry | ShardEntry) -> str | None:
    if entry.first_event is None or entry.last_event is None:
        return None
    return f"{entry.first_event}:{entry.last_event + 1}"
