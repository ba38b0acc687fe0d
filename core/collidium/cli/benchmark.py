"""``collidium benchmark``: decisions of operators about submissions and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.context import client, on_platform
from collidium.cli.options import complete_tasks, json_option, key_option
from collidium.cli.output import (
    cell,
    note,
    print_json,
    print_table,
    show_record,
)
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.benchmarks.submissions.replay import Change, Review
    from collidium.platform import Platform

#: The actor in the audit log.
ACTOR = "command"


@click.group()
def benchmark() -> None:
    """Decide about submissions and their scores."""


@benchmark.command()
@click.argument("submission_id")
@key_option
@json_option
def verify(submission_id: str, idempotency_key: str | None, as_json: bool) -> None:
    """Verify the self-reported metrics of a submission, so that it earns credits; needs ADMIN_TOKEN.

    \b
    collidium benchmark verify 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48
    """
    with client() as server:
        verified = server.admin_verify(submission_id, idempotency_key=idempotency_key)
    rows = {
        "submission": verified.submission_id,
        "task": verified.task,
        "account": verified.hub_username,
        "verified": verified.verified_at,
        "credits earned": verified.credits_earned,
    }
    show_record(verified, rows, as_json=as_json)


@benchmark.command()
@click.argument("task", shell_complete=complete_tasks)
@click.option(
    "--apply/--preview", "apply", help="Apply the new scores; default: only show what would change."
)
@json_option
def rescore(task: str, apply: bool, as_json: bool) -> None:
    """Score the submissions to TASK again, with its current scorer and truth.

    Runs on the server's machine. Earned credits stay, newly earned ones are added; earlier scores are kept
    with their versions. An interrupted run is resumed.

    \b
    collidium benchmark rescore tracking --preview
    collidium benchmark rescore tracking --apply
    """

    async def run(platform: Platform) -> Review:
        from collidium.benchmarks.submissions.rescoring import rescore

        with progress_bar("Scoring (files)") as progress:
            return await rescore(platform, task, apply=apply, actor=ACTOR, progress=progress)

    review = on_platform(run)
    print_json(review) if as_json else _show(review)


def _show(review: Review) -> None:
    rows = [_change(change, review) for change in review.submissions]
    print_table(("rank", "account", "submission", "score", "earns", "not scored because"), rows)
    print_table(
        ("metric", "best"),
        ((best.metric, _arrow(best.before, best.after)) for best in review.bests),
        title="Bests",
    )
    versions = f"scorer {review.scorer_version} and truth {review.truth_version}"
    if review.applied:
        note(f"Task {review.task} now has the scores of {versions}.")
    else:
        note(f"Nothing has changed. These are the scores of {versions}; --apply applies them.")


def _change(change: Change, review: Review) -> tuple[object, ...]:
    metric = review.primary_metric
    score = _arrow(change.scores_before.get(metric), change.scores.get(metric))
    rank = _arrow(change.rank_before, change.rank)
    return rank, change.hub_username, change.submission_id, score, change.earns, change.problem


def _arrow(before: object, after: object) -> str:
    return cell(after) if before == after else f"{cell(before)} → {cell(after)}"
