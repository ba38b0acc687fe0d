"""``collidium submissions``: what an account has submitted."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.leaderboard import model_cell, score_cell
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, print_json, print_table


@click.command()
@click.option("--task", metavar="TASK", help="Only submissions to this task.")
@limit_option("submissions")
@json_option
def submissions(task: str | None, limit: int, as_json: bool) -> None:
    """List your submissions, newest first. `collidium link` sets their model, code and paper.

    \b
    collidium submissions
    collidium submissions --task tracking --json
    """
    with client() as server:
        found = server.submissions(task=task, limit=limit).items
    if as_json:
        print_json(found)
        return
    print_table(
        ("submission", "task", "scores", "credits", "model", "submitted"),
        (
            (
                submission.submission_id,
                submission.task,
                [f"{metric} {score_cell(submission, metric)}" for metric in submission.scores],
                submission.credits_earned,
                model_cell(submission),
                submission.submitted_at,
            )
            for submission in found
        ),
    )
