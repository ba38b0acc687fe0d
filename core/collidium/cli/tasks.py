"""``collidium tasks``: what the server asks for."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.cards import print_card
from collidium.cli.output import json_option, print_json, print_table


@click.command()
@click.argument("name", required=False)
@json_option
def tasks(name: str | None, as_json: bool) -> None:
    """List the tasks of the server, or show what task NAME asks for and how it is scored.

    \b
    collidium tasks
    collidium tasks tracking
    """
    with client() as server:
        found = server.tasks().items if name is None else server.task(name)
    if as_json:
        print_json(found)
    elif isinstance(found, tuple):
        print_table(
            ("task", "title", "dataset", "events", "primary metric", "takes submissions"),
            (
                (
                    task.name,
                    task.title,
                    task.dataset,
                    f"{task.eval_events.start}:{task.eval_events.stop}",
                    task.primary_metric,
                    task.accepts_submissions,
                )
                for task in found
            ),
        )
    else:
        reason = None if found.accepts_submissions else "the server has no truth for it yet"
        print_card(found, {"scorer": found.scorer_version, "truth": found.truth_version}, reason)
