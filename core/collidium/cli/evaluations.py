"""``collidium evaluations``: models that the server runs, and how far they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option
from collidium.cli.output import ColumnSpec, note, print_json, print_record, printable, show_items

STATES: Final = ("received", "checking", "running", "scored", "failed", "cancelled")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collidium.client import Client, Evaluation


@click.command()
@click.argument("evaluation_id", metavar="[EVALUATION]", required=False)
@click.option("--wait", is_flag=True, help="Wait until EVALUATION has ended.")
@click.option("--cancel", is_flag=True, help="Cancel EVALUATION.")
@limit_option("evaluations")
@json_option
def evaluations(evaluation_id: str | None, wait: bool, cancel: bool, limit: int, as_json: bool) -> None:
    """List your models that the server runs or ran, newest first; or show EVALUATION.

    `collidium submit TASK --model` sends one.

    \b
    collidium evaluations
    collidium evaluations 0123456789abcdef0123456789abcdef --wait
    collidium evaluations 0123456789abcdef0123456789abcdef --cancel
    """
    if evaluation_id is None and (wait or cancel):
        raise click.UsageError("give the EVALUATION")
    with client() as server:
        if evaluation_id is None:
            show_evaluations(server.evaluations(limit=limit).items, as_json=as_json)
            return
        found = server.cancel_evaluation(evaluation_id) if cancel else server.evaluation(evaluation_id)
        show_evaluation(server, found, wait=wait, as_json=as_json)


def show_evaluations(found: Sequence[Evaluation], *, accounts: bool = False, as_json: bool) -> None:
    """Evaluations as a table, with the account of each if ``accounts``, or as JSON."""
    columns: dict[str, ColumnSpec] = {
        "evaluation": "evaluation_id",
        **({"account": "hub_username"} if accounts else {}),
        "challenge": "challenge",
        "state": state_text,
        "parameters": "n_params",
        "received": "received_at",
        "submission": "submission_id",
    }
    show_items(found, columns, as_json=as_json)


def show_evaluation(server: Client, found: Evaluation, *, wait: bool, as_json: bool) -> None:
    """One evaluation, when it has ended if ``wait``; exit code 1 where it has failed then."""
    if wait and not found.has_ended:
        found = server.wait_for_model(
            found.evaluation_id, on_change=lambda seen: note(f"The model is {state_text(seen)}.")
        )
    if as_json:
        print_json(found)
    else:
        print_record(
            {
                "evaluation": found.evaluation_id,
                "challenge": found.challenge,
                "state": state_text(found),
                "reason": found.reason,
                "parameters": found.n_params,
                "received": found.received_at,
                "submission": found.submission_id,
            }
        )
        if found.submission_id:
            click.echo(printable(f"`collidium submissions {found.submission_id}` shows its scores."))
    if wait and found.state != "scored":
        raise SystemExit(1)


def state_text(found: Evaluation) -> str:
    """The state, and how far it is."""
    if found.state != "running":
        return found.state
    return f"running, {found.events_done} of {found.events} events"
