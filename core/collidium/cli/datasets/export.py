"""``collidium datasets export``: events as a file for another display."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from collidium.cli.datasets.download import check_events
from collidium.cli.datasets.source import config_option, hub_options, place_of, source_argument
from collidium.cli.output import json_option, note, print_json
from collidium.cli.progress import progress_bar


@click.command()
@source_argument()
@config_option
@click.option("--events", required=True, metavar="START:STOP", help="Events that are written.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["phoenix"]),
    default="phoenix",
    show_default=True,
    help="phoenix: JSON for Phoenix, the display of the HEP Software Foundation.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="Where they go; a file that is there is replaced.",
)
@hub_options
@json_option
def export(
    source: str,
    config: str | None,
    events: str,
    file_format: Literal["phoenix"],
    output: Path,
    hub: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Write events of SOURCE into one file for an event display: hits, tracks, calorimeter towers and jets.

    Memory holds some events at a time; the file is there when it is whole.

    \b
    collidium datasets export alice/odd-ttbar --config ttbar_pu0 --events 0:10 -o events.json
    collidium datasets export ./events --events 3:4 --format phoenix -o event-3.json
    """
    check_events(events)
    from collidium.contracts.task import EventRange
    from collidium.event_display.export import export as write

    place = place_of(source, hub, revision)
    with progress_bar("Writing (events)") as progress:
        made = write(place, EventRange.parse(events), output, config=config, progress=progress)
    if as_json:
        print_json(made)
        return
    from collidium.hub.downloads import size_text

    click.echo(made.file)
    note(f"{made.events} events, {size_text(made.bytes)}.")
