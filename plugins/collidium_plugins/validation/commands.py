"""``collidium validate``: compares a dataset with a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.options import (
    EXISTING_DIRECTORY,
    EXISTING_FILE,
    FILE,
    config_option,
    events_option,
    json_option,
)
from collidium.cli.output import json_wanted, note, print_json, print_table
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange


@click.command()
@click.argument("directory", type=EXISTING_DIRECTORY)
@config_option
@events_option("Events to read; default: all.")
@click.option(
    "--reference",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR|FILE",
    help="Another dataset, or a file that --json wrote; default: figures of the Open Data Detector.",
)
@click.option(
    "--with",
    "extra",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    help="Quantities made elsewhere, for example a map of material, as --json writes them.",
)
@click.option("--html", "page", type=FILE, metavar="FILE", help="Write a page of plots.")
@json_option
def validate(
    directory: Path,
    config: str | None,
    events: EventRange | None,
    reference: Path | None,
    extra: tuple[Path, ...],
    page: Path | None,
) -> None:
    """Compare tracking, calorimeters and generator of the events in DIRECTORY with a reference.

    A quantity disagrees where what exceeds the tolerance of its reference is significant by four standard
    deviations; with few events nearly all agree. What needs a table or column that is missing is left out.

    \b
    collidium validate ./events --html validation.html
    collidium validate ./events --reference ./older-events --json > validation.json
    """
    from collidium.files import durable
    from collidium_plugins.validation import page as pages
    from collidium_plugins.validation.report import validate as validate_events

    with progress_bar("Reading (events)") as progress:
        report = validate_events(
            directory, config, events=events, reference=reference, extra=extra, progress=progress
        )
    if page is not None:
        durable.replace(page, pages.html(report))
    if json_wanted():
        print_json(report)
        return
    compared = [entry for entry in report["quantities"].values() if entry["bins"]]
    columns = ("quantity", "value", "reference", "chi2/bin (bins)", "beyond tolerance", "verdict")
    print_table(columns, ((pages.title(entry), *pages.cells(entry)) for entry in compared))
    summary = ", ".join(f"{count} {verdict}" for verdict, count in report["summary"].items())
    note(f"{report['events']} events; {summary}; {len(report['missing'])} not made.")
    if page is not None:
        note(f"Plots: {page}")
