"""``collidium datasets download`` and ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from collidium.cli.options import (
    DIRECTORY,
    FILE,
    cache_option,
    config_option,
    events_option,
    hub_options,
    json_option,
    locate_source,
    source_argument,
)
from collidium.cli.output import note, show_value
from collidium.cli.progress import progress_bar
from collidium.presentation.quantities import size_text

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.datasets import Fetched
    from collidium.datasets.exporting import Exported


@click.command()
@source_argument()
@config_option
@click.option("--tables", metavar="NAME,…", help="Tables, separated by commas; default: all of the config.")
@events_option("Only shards with these events; default: all.")
@click.option(
    "--output",
    type=DIRECTORY,
    help="Write the shards to this directory, with their paths in the repository, instead of the cache.",
)
@cache_option
@click.option("--verify", is_flag=True, help="Also check the hashes of shards that are present.")
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
) -> None:
    """Download the shards of SOURCE with the given events and tables, and print their directory.

    Shards that are present are not downloaded again. The same command resumes after an interruption.

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
    show_value(fetched, _print_fetched)


def _print_fetched(fetched: Fetched) -> None:
    click.echo(fetched.directory)
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
@events_option("Events to write; default: all. Required for phoenix.")
@click.option("--tables", metavar="NAME,…", help="Tables of a ROOT file; default: all of the config.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["phoenix", "hepmc3", "root"]),
    default="phoenix",
    show_default=True,
    help="phoenix: JSON for the event display Phoenix; hepmc3: the generator's particles as text; root: a "
    "tree per table.",
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
    help="Write several numbered files. The same command resumes after an interruption. Not for phoenix.",
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
) -> None:
    """Write events of SOURCE to a file for Phoenix, HepMC3 readers or ROOT.

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
        raise click.UsageError("--tables needs --format root")
    if events_per_file and file_format == "phoenix":
        raise click.UsageError("--events-per-file needs --format hepmc3 or root")
    place = locate_source(source, hub, revision)
    with progress_bar("Writing (events)") as progress:
        if file_format == "phoenix":
            from collidium.event_display.phoenix import export as write

            if events is None:
                raise click.UsageError("--format phoenix needs --events")
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
    show_value(made, _print_exported)


def _print_exported(made: Exported) -> None:
    click.echo(made.file)
    files = f" in {made.files} files" if made.files > 1 else ""
    reused = f", {made.reused} of them already written" if made.reused else ""
    note(f"{made.events} events{files}, {size_text(made.bytes)}{reused}.")
    if made.left_out:
        note(f"Left out, as they hold no numbers: {', '.join(made.left_out)}.")


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in (text or "").split(",") if name.strip()] or None
