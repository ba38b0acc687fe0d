"""``collidium check``: try predictions without submitting them."""

from __future__ import annotations

from pathlib import Path

import click

from collidium.cli.calling import client
from collidium.cli.output import json_option, note, print_json
from collidium.cli.progress import progress_bar


@click.command()
@click.argument("task")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def check(task: str, file: Path, as_json: bool) -> None:
    """Have the server check FILE, a parquet file of predictions, for TASK. Nothing is kept or scored.

    Lists every problem with column, event and example rows.

    \b
    collidium check tracking predictions.parquet
    """
    click.get_current_context().find_root().obj.checks = True
    with client() as server, progress_bar(f"Sending {file.name}", "Checking", sizes=True) as progress:
        checked = server.check(task, file, progress)
    if as_json:
        print_json(checked)
    else:
        click.echo(f"{file.name} is valid: {checked.rows} rows.")
        for warning in checked.warnings:
            note(f"Warning: {warning}")
