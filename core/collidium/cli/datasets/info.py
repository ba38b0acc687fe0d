"""``collidium datasets info``: what a dataset is, and what its columns are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.datasets.source import config_option, hub_options, place_of, source_argument
from collidium.cli.output import json_option, moment, print_json, print_record, print_table

if TYPE_CHECKING:
    from collidium.datasets.catalogue import Catalogue, ConfigEntry


@click.command()
@source_argument()
@config_option
@click.option("--table", metavar="NAME", help="Show the columns of this table.")
@hub_options
@json_option
def info(
    source: str, config: str | None, table: str | None, hub: str | None, revision: str | None, as_json: bool
) -> None:
    """Show what SOURCE is: revision, access, configs; with --table the columns, their types and units.

    \b
    collidium datasets info alice/odd-ttbar
    collidium datasets info alice/odd-ttbar --config ttbar_pu0 --table tracker_hits
    """
    from collidium.datasets.access import catalogue

    place = place_of(source, hub, revision)
    with catalogue(place) as found:
        if table is not None:
            columns = _columns(found, config, table)
            if as_json:
                print_json(columns)
            else:
                print_table(("column", "stored as", "type", "unit"), ([*row.values()] for row in columns))
            return
        about = _about(found, place)
        configs = found.configs()
    if as_json:
        print_json({**about, "configs": configs})
    else:
        _show(about, configs)


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
    """Canonical and stored name, type and unit of each column."""
    from collidium.datasets.schemas import SCHEMAS, canonical

    (entry,) = found.tables(config, [table])
    units = {
        field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in SCHEMAS.get(table, ())
    }
    return [
        {"column": name, "stored_as": stored, "type": entry.columns[stored], "unit": units.get(name) or None}
        for name, stored in canonical(table, list(entry.columns)).items()
    ]


def _show(about: dict[str, Any], configs: list[ConfigEntry]) -> None:
    from collidium.hub.downloads import size_text

    size = size_text(sum(entry.bytes for entry in configs))
    shown = {name.replace("_", " "): value for name, value in about.items()}
    if "last modified" in shown:
        shown["last modified"] = moment(shown["last modified"])
    print_record(shown | {"configs": [entry.config for entry in configs], "size": size})
