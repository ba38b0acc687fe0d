"""``collidium datasets list``: the configs of a dataset, or the datasets of the hub."""

from __future__ import annotations

import click

from collidium.cli.calling import check_environment
from collidium.cli.datasets.source import hub_options, place_of, source_argument
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, moment, note, print_json, print_table


@click.command("list")
@source_argument(required=False)
@limit_option("datasets", default=100)
@hub_options
@json_option
def list_(source: str | None, limit: int, hub: str | None, revision: str | None, as_json: bool) -> None:
    """List the configs of SOURCE; without it, the datasets of the hub.

    \b
    collidium datasets list
    collidium datasets list alice/odd-ttbar
    collidium datasets list ./events
    """
    if source is None:
        _list_repositories(hub, limit, as_json=as_json)
        return
    from collidium.datasets import list_configs

    found = list_configs(place_of(source, hub, revision))
    if as_json:
        print_json(found)
        return
    from collidium.hub.downloads import size_text

    print_table(
        ("config", "tables", "shards", "size"),
        ((entry.config, entry.tables, entry.shards, size_text(entry.bytes)) for entry in found),
    )


def _list_repositories(hub: str | None, limit: int, *, as_json: bool) -> None:
    from collidium.datasets import list_repositories
    from collidium.datasets.access import TAG

    check_environment()
    found = list_repositories(endpoint=hub, limit=limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ("dataset", "last modified", "private"),
        ((item["repo"], moment(item["last_modified"]), item["private"]) for item in found),
    )
    if not found:
        note(f"No dataset of the hub has the tag {TAG}. Others are listed by their name: NAMESPACE/NAME.")
