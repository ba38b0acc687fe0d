"""``collidium submit``: send predictions to be scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.calling import client
from collidium.cli.leaderboard import model_cell
from collidium.cli.output import json_option, note, print_json, print_record, print_table
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.client import Receipt


@click.command()
@click.argument("task")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--model-repo", metavar="NAMESPACE/NAME", help="The model's repository on the hub.")
@json_option
def submit(task: str, file: Path, model_repo: str | None, as_json: bool) -> None:
    """Send FILE, a parquet file of predictions, to be scored for TASK.

    The same file again gives the first answer, and links the model if none was linked. `collidium link`
    changes links later. `collidium check` tries a file without submitting it.

    \b
    collidium submit tracking predictions.parquet
    collidium submit tracking predictions.parquet --model-repo alice/helix
    """
    with client() as server, progress_bar(f"Sending {file.name}", "Scoring", sizes=True) as progress:
        receipt = server.submit(task, file, model_repo, progress)
    if as_json:
        print_json(receipt)
    else:
        _show(receipt)


def _show(receipt: Receipt) -> None:
    errors = receipt.uncertainties
    print_table(
        ("metric", "score", "standard error"),
        ((metric, score, errors.get(metric)) for metric, score in receipt.scores.items()),
    )
    print_record(
        {
            "submission": receipt.submission_id,
            "model": model_cell(receipt),
            "credits earned": receipt.credits_earned,
            "rows": receipt.rows,
            "scorer, truth": (receipt.scorer_version, receipt.truth_version),
        }
    )
    if receipt.deduplicated:
        note("You sent this very file before; this is the answer it got then.")
    for warning in receipt.warnings:
        note(f"Warning: {warning}")


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
