"""``collidium datasets download``: the shards that are needed, onto this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.datasets.source import config_option, hub_options, place_of, source_argument
from collidium.cli.output import json_option, note, print_json
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.datasets import Fetched


@click.command()
@source_argument()
@config_option
@click.option("--tables", metavar="NAME,…", help="Tables, separated by commas; default: all of the config.")
@click.option("--events", metavar="START:STOP", help="Events that are needed; default: all.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Put the shards into this directory, as they lie in the repository, not into the cache.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the cache; default: collidium/datasets in XDG_CACHE_HOME or ~/.cache.",
)
@click.option("--verify", is_flag=True, help="Check what is there already against the hub's hashes, too.")
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="Files downloaded at once.",
)
@hub_options
@json_option
def download(
    source: str,
    config: str | None,
    tables: str | None,
    events: str | None,
    output: Path | None,
    cache: Path | None,
    verify: bool,
    parallel: int,
    hub: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Download the shards of SOURCE that hold some events of some tables; prints the directory.

    What is there already is not sent again. Interrupted, the same command goes on where it stopped.

    \b
    collidium datasets download alice/odd-ttbar --config ttbar_pu0 --tables tracker_hits,particles
    collidium datasets download alice/odd-ttbar --config ttbar_pu200 --events 0:500 --output ./events
    """
    if output is not None and cache is not None:
        raise click.UsageError("shards go to --output or into a --cache: give one of them")
    check_events(events)
    from collidium import datasets

    names = [name.strip() for name in (tables or "").split(",") if name.strip()] or None
    place = place_of(source, hub, revision)
    with progress_bar("Downloading", sizes=True) as progress:
        fetched = datasets.download(
            place,
            config,
            names,
            events,
            output=output,
            cache=cache,
            verify=verify,
            parallel=parallel,
            progress=progress,
        )
    if as_json:
        print_json(fetched)
        return
    click.echo(fetched.directory)
    _tell(fetched)


def check_events(events: str | None) -> None:
    """Raise BadParameter for what is no range of events."""
    from collidium.contracts.task import EventRange

    try:
        if events is not None:
            EventRange.parse(events)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--events") from None


def _tell(fetched: Fetched) -> None:
    from collidium.hub.downloads import size_text

    count = sum(map(len, fetched.shards.values()))
    came = len(fetched.downloaded)
    shards = "1 shard" if count == 1 else f"{count} shards"
    if fetched.revision == "local":
        note(f"{shards}, on this machine already.")
        return
    told = f"{came} downloaded ({size_text(fetched.downloaded_bytes)})" if came else "none downloaded"
    there = f", {count - came} there already" if count > came else ""
    note(f"{shards} at commit {fetched.revision[:12]}: {told}{there}.")
