"""``collidium plugin``: the installed plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collidium.cli.context import quiet_settings
from collidium.cli.options import json_option
from collidium.cli.output import note, plain, print_json, print_table

if TYPE_CHECKING:
    from collidium.plugins import Provided


@click.group()
def plugin() -> None:
    """See which plugins are installed and whether they load."""


@plugin.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List every plugin with what it provides, or why it does not load.

    Ends with 0 even if a plugin is broken: the platform runs without it.

    \b
    collidium plugin list
    """
    from collidium import plugins
    from collidium.api.app import create_app

    settings = quiet_settings()
    loaded = plugins.load(settings.plugins_blocked)
    kinds: list[Provided[Any]] = [
        loaded.tasks(),
        loaded.pipelines(),
        loaded.runners(settings),
        loaded.storages(settings),
        loaded.identity_providers(settings),
        loaded.executors(settings),
        loaded.blueprints(settings),
        loaded.commands(),
        loaded.screens(),
    ]
    # As a server does it: a blueprint that cannot be mounted is its plugin's failure.
    create_app(settings, loaded)
    brings: dict[str, list[str]] = {name: [] for name in loaded.records}
    for provided in kinds:
        for name, origin in provided.origins.items():
            brings[origin].append(f"{provided.kind} {name}")
    if as_json:
        records = [{**plain(record), "brings": brings[name]} for name, record in loaded.records.items()]
        print_json({"plugins": records, "clashes": loaded.clashes})
        return
    print_table(
        ("plugin", "from", "version", "state", "provides"),
        (
            (r.name, r.distribution, r.version, r.state, r.error or brings[r.name])
            for r in loaded.records.values()
        ),
    )
    for clash in loaded.clashes:
        note(f"Clash: {clash}")
