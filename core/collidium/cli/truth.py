"""``collidium truth`` and ``collidium benchmark``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client, on_platform
from collidium.cli.options import (
    TIME,
    complete_installed_tasks,
    complete_tasks,
    events_option,
    json_option,
    key_option,
    parse_options,
    truth_option,
)
from collidium.cli.output import (
    cell,
    json_wanted,
    note,
    print_json,
    print_table,
    show_items,
    show_record,
    show_value,
)
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.platform import Platform
    from collidium.submissions import giving_back, replay
    from collidium.truth.registry import TruthRecord

COLUMNS: Final = {
    "task": "task",
    "truth": "version",
    "current": "current",
    "dataset": "dataset",
    "revision": "revision",
    "events": "events",
    "imported": "imported_at",
    "made with": "notes",
}

#: The actor in the audit log.
ACTOR = "command"


@click.group()
def truth() -> None:
    """Import the truth that submissions are scored against. It never leaves the server."""


@truth.command("import")
@click.argument("task", shell_complete=complete_installed_tasks)
@click.option("--from", "source", required=True, metavar="DIR|REPO", help="Directory, or dataset on the hub.")
@click.option("--config", metavar="NAME", help="Dataset config, for example ttbar_pu200.")
@events_option("Events to score; default: those of the task.")
@truth_option
@click.option(
    "--inputs",
    metavar="REPO[@REV]",
    help="Repository of the inputs, named by the card; default: REPO of --from.",
)
@click.option("--train", metavar="REPO[@REV]", help="Repository of the training data, named by the card.")
@click.option(
    "--current/--not-current",
    default=True,
    help="Use it for the task's own challenge, or keep it for `challenge new --truth`.",
)
@click.option(
    "--public",
    is_flag=True,
    help="With --not-current: the events are public, for `collidium model reproduce --server`.",
)
@json_option
def import_(
    task: str,
    source: str,
    config: str | None,
    events: EventRange | None,
    options: tuple[str, ...],
    inputs: str | None,
    train: str | None,
    current: bool,
    public: bool,
) -> None:
    """Import truth for TASK from a dataset, and score submissions against it.

    A private repository is read with your token: HF_TOKEN, or that of `collidium login`. The task's card
    names --inputs and --train at their current commits, with the command that downloads the events.

    \b
    collidium truth import tracking --from ./ttbar --events 90000:100000
    collidium truth import tracking --from alice/odd-ttbar --config ttbar_pu200
    collidium truth import tracking --from ./ttbar --option hits=uniform
    collidium truth import tracking --from ./public --events 0:1000 --not-current --public
    collidium truth import tracking --from ./truth --inputs alice/odd-eval --train alice/odd-ttbar@v1
    """
    if public and current:
        raise click.UsageError("--public needs --not-current: the current truth must be of hidden events")

    async def run(platform: Platform) -> TruthRecord:
        from collidium.challenges import truth_in_use
        from collidium.hub.sources import find_hub

        token = find_hub(platform.settings.hub).token
        with progress_bar("Preparing truth (events)") as progress:
            return await truth_in_use.import_truth(
                platform,
                task,
                source,
                config=config,
                events=events,
                options=parse_options(options),
                inputs=inputs,
                train=train,
                token=token,
                current=current,
                public=public,
                progress=progress,
            )

    record = on_platform(run)
    show_record(record, {name: getattr(record, field) for name, field in COLUMNS.items()})
    if current and not json_wanted():
        note(f"Task {record.task} is now scored against truth {record.version}.")


@truth.command("list")
@json_option
def list_() -> None:
    """List all versions of truth, newest first.

    \b
    collidium truth list
    """
    from collidium.challenges import truth_in_use

    records = on_platform(lambda _: truth_in_use.list_truths())
    show_items(records, COLUMNS)


@click.group()
def benchmark() -> None:
    """Verify submissions, and score them again."""


@benchmark.command()
@click.argument("submission_id")
@key_option
@json_option
def verify(submission_id: str, idempotency_key: str | None) -> None:
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
    show_record(verified, rows)


@benchmark.command()
@click.argument("task", shell_complete=complete_tasks)
@click.option(
    "--apply/--preview", "apply", help="Apply the new scores; default: only show what would change."
)
@json_option
def rescore(task: str, apply: bool) -> None:
    """Score the submissions to TASK again, with its current scorer and truth.

    Runs on the server's machine. Credits already earned are kept, new ones are added; earlier scores are kept
    with their versions. The same command resumes after an interruption.

    \b
    collidium benchmark rescore tracking --preview
    collidium benchmark rescore tracking --apply
    """

    async def run(platform: Platform) -> replay.Review:
        from collidium.submissions import rescoring

        with progress_bar("Scoring (files)") as progress:
            return await rescoring.rescore(platform, task, apply=apply, actor=ACTOR, progress=progress)

    review = on_platform(run)
    show_value(review, _print_review)


@benchmark.command("give-back")
@click.option("--apply/--preview", "apply", help="Give it back; default: only show what it is.")
@click.option(
    "--before",
    type=TIME,
    help="Only verdicts from before; default: when the database was upgraded from such a release.",
)
@json_option
def give_back(apply: bool, before: datetime | None) -> None:
    """Give back what earlier releases took because a scoring process died.

    Runs on the server's machine. Models that ended as not_scored are refunded, do not count for the quota of
    their day, and are run again without a charge while their challenge accepts them. Challenges in which
    submissions with scores have no place are scored again; a file that the scorer rejects remains without.

    \b
    collidium benchmark give-back
    collidium benchmark give-back --apply
    collidium benchmark give-back --before 2027-01-31T12:00Z
    """

    async def run(platform: Platform) -> tuple[giving_back.Taken, list[replay.Review]]:
        from collidium.contracts.storage import StorageUnavailable
        from collidium.errors import CollidiumError
        from collidium.submissions import giving_back, rescoring

        found = await giving_back.taken(platform.tasks.things, before)
        for model in found.models if apply else ():
            try:
                await giving_back.give_back(model, actor=ACTOR)
            except CollidiumError as error:  # the other models do not wait for it
                note(f"{model.evaluation_id}: {error}")
        reviews = []
        with progress_bar("Scoring (files)") as progress:
            for name in found.challenges:
                try:
                    reviews.append(
                        await rescoring.rescore(platform, name, apply=apply, actor=ACTOR, progress=progress)
                    )
                except (CollidiumError, StorageUnavailable) as error:  # nor do the other challenges
                    note(f"{name}: {error}")
        return found, reviews

    found, reviews = on_platform(run)
    if json_wanted():
        print_json({"models": found.models, "places": found.places, "reviews": reviews, "applied": apply})
        return
    _print_taken(found)
    for review in reviews:
        _print_review(review)
    if not found.models and not found.places:
        note("Nothing was taken.")
    elif not apply:
        note("Nothing has changed: add --apply to give it back.")


def _print_taken(found: giving_back.Taken) -> None:
    print_table(
        ("model", "challenge", "account", "price", "not run again because"),
        (
            (one.evaluation_id, one.challenge, one.hub_username, cell(one.price), one.not_run)
            for one in found.models
        ),
        title="Models that ended as not_scored",
    )
    print_table(
        ("submission", "challenge", "account", "why it has no place"),
        ((one.submission_id, one.challenge, one.hub_username, one.reason) for one in found.places),
        title="Submissions with scores that have no place",
    )


def _print_review(review: replay.Review) -> None:
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


def _change(change: replay.Change, review: replay.Review) -> tuple[object, ...]:
    metric = review.primary_metric
    score = _arrow(change.scores_before.get(metric), change.scores.get(metric))
    rank = _arrow(change.rank_before, change.rank)
    return rank, change.hub_username, change.submission_id, score, change.earns, change.problem


def _arrow(before: object, after: object) -> str:
    return cell(after) if before == after else f"{cell(before)} → {cell(after)}"
