"""``collidium datasets download`` and ``export``: shards, or one file of another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from collidium.cli.options import (
    DIRECTORY,
    FILE,
    config_option,
    events_option,
    hub_options,
    json_option,
    locate_source,
    source_argument,
)
from collidium.cli.output import note, print_json
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.datasets import Fetched


@click.command()
@source_argument()
@config_option
@click.option("--tables", metavar="NAME,…", help="Tables, separated by commas; default: all of the config.")
@events_option("Events that are needed; default: all.")
@click.option(
    "--output",
    type=DIRECTORY,
    help="Write the shards to this directory, with the paths of the repository, not to the cache.",
)
@click.option(
    "--cache",
    type=DIRECTORY,
    help="Directory of the cache; default: collidium/datasets in XDG_CACHE_HOME or ~/.cache.",
)
@click.option("--verify", is_flag=True, help="Also check shards that are present against the hub's hashes.")
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
    events: EventRange | None,
    output: Path | None,
    cache: Path | None,
    verify: bool,
    parallel: int,
    hub: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Download the shards of SOURCE that hold some events of some tables; prints the directory.

    Shards that are present are not downloaded again. After an interruption, the same command resumes.

    \b
    collidium datasets download alice/odd-ttbar --config ttbar_pu0 --tables tracker_hits,particles
    collidium datasets download alice/odd-ttbar --config ttbar_pu200 --events 0:500 --output ./events
    """
    if output is not None and cache is not None:
        raise click.UsageError("give --output or --cache, not both")
    from collidium import datasets

    names = _names(tables)
    place = locate_source(source, hub, revision)
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
    _note_shards(fetched)


def _note_shards(fetched: Fetched) -> None:
    from collidium.hub.downloads import size_text

    count = sum(map(len, fetched.shards.values()))
    new = len(fetched.downloaded)
    shards = "1 shard" if count == 1 else f"{count} shards"
    if fetched.revision == "local":
        note(f"{shards}, already on this machine.")
        return
    downloaded = f"{new} downloaded ({size_text(fetched.downloaded_bytes)})" if new else "none downloaded"
    present = f", {count - new} already present" if count > new else ""
    note(f"{shards} at commit {fetched.revision[:12]}: {downloaded}{present}.")


@click.command()
@source_argument()
@config_option
@events_option("Events that are written; phoenix needs it, default: all.")
@click.option("--tables", metavar="NAME,…", help="Tables of a ROOT file; default: all of the config.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["phoenix", "hepmc3", "root"]),
    default="phoenix",
    show_default=True,
    help="phoenix: JSON for Phoenix, the display of the HEP Software Foundation; hepmc3: text of the "
    "generator's particles; root: a tree for each table.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="FILE",
    help="Output file; an existing one is replaced.",
)
@click.option(
    "--events-per-file",
    type=click.IntRange(1),
    metavar="N",
    help="Write several numbered files; repeated after an interruption, the command writes those that are "
    "missing. Not for phoenix.",
)
@hub_options
@json_option
def export(
    source: str,
    config: str | None,
    events: EventRange | None,
    tables: str | None,
    file_format: Literal["phoenix", "hepmc3", "root"],
    output: Path,
    events_per_file: int | None,
    hub: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Write events of SOURCE to a file for an event display, a generator's reader, or ROOT.

    Events are read in blocks; the file appears when it is complete. root needs `pip install
    'collidium[root]'`.

    \b
    collidium datasets export alice/odd-ttbar --config ttbar_pu0 --events 0:10 -o events.json
    collidium datasets export ./events --format hepmc3 -o events.hepmc
    collidium datasets export ./events --format root --tables tracker_hits,tracks -o events.root
    collidium datasets export ./events --format root --events-per-file 1000 -o events.root
    """
    names = _names(tables)
    if names and file_format != "root":
        raise click.UsageError("--tables goes with --format root")
    if events_per_file and file_format == "phoenix":
        raise click.UsageError("--events-per-file goes with --format hepmc3 and root")
    place = locate_source(source, hub, revision)
    with progress_bar("Writing (events)") as progress:
        if file_format == "phoenix":
            from collidium.event_display.phoenix import export as write

            if events is None:
                raise click.UsageError("--format phoenix needs --events: a display holds few")
            made = write(place, events, output, config=config, progress=progress)
        else:
            from collidium.datasets import exporting

            made = exporting.export(
                place,
                output,
                file_format,
                config=config,
                tables=names,
                events=events,
                events_per_file=events_per_file,
                progress=progress,
            )
    if as_json:
        print_json(made)
        return
    from collidium.hub.downloads import size_text

    click.echo(made.file)
    files = f" in {made.files} files" if made.files > 1 else ""
    reused = f", {made.reused} of them already written" if made.reused else ""
    note(f"{made.events} events{files}, {size_text(made.bytes)}{reused}.")


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in (text or "").split(",") if name.strip()] or None
