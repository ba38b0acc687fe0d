"""``collidium evaluations``."""

from __future__ import annotations

import click

from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option
from collidium.cli.output import show_items
from collidium.cli.printing import show_evaluation
from collidium.presentation import evaluations as presented


@click.command()
@click.argument("evaluation_id", metavar="[EVALUATION]", required=False)
@click.option("--wait", is_flag=True, help="Wait until EVALUATION has ended.")
@click.option("--cancel", is_flag=True, help="Cancel EVALUATION.")
@limit_option("evaluations")
@json_option
def evaluations(evaluation_id: str | None, wait: bool, cancel: bool, limit: int) -> None:
    """List your models that the server runs or has run, newest first; or show EVALUATION.

    `collidium submit TASK --model` submits a model.

    \b
    collidium evaluations
    collidium evaluations 0123456789abcdef0123456789abcdef --wait
    collidium evaluations 0123456789abcdef0123456789abcdef --cancel
    """
    if evaluation_id is None and (wait or cancel):
        raise click.UsageError("give the EVALUATION")
    with client() as server:
        if evaluation_id is None:
            show_items(server.evaluations(limit=limit).items, presented.in_commands())
            return
        found = server.cancel_evaluation(evaluation_id) if cancel else server.evaluation(evaluation_id)
        show_evaluation(server, found, wait=wait)
