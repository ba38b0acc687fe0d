"""``collidium tasks``, ``leaderboard`` and ``models``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option, limit_option
from collidium.cli.output import ColumnSpec, json_wanted, print_items, show_items, show_value
from collidium.cli.printing import print_card, print_places
from collidium.presentation import places as boards
from collidium.presentation import submissions

if TYPE_CHECKING:
    from collidium.client import TaskCard

_COLUMNS: Final[Mapping[str, ColumnSpec]] = {
    "task": "name",
    "title": "title",
    "dataset": "dataset",
    "events": lambda task: f"{task.eval_events.start}:{task.eval_events.stop}",
    "primary metric": "primary_metric",
    "accepts submissions": "accepts_submissions",
}


@click.command()
@click.argument("name", required=False, shell_complete=complete_tasks)
@json_option
def tasks(name: str | None) -> None:
    """List the tasks of the server, or show the card of task NAME: what to predict and how it is scored.

    \b
    collidium tasks
    collidium tasks tracking
    """
    with client() as server:
        if name is None:
            show_items(server.tasks().items, _COLUMNS)
        else:
            show_value(server.task(name), _print_task)


def _print_task(card: TaskCard) -> None:
    print_card(card, {"scorer": card.scorer_version, "truth": card.truth_version}, card.reason)


@click.command()
@click.option("--search", default="", metavar="TEXT", help="Only models whose name contains this text.")
@click.option("--tag", default="", help="Only models with this tag.")
@click.option(
    "--task", default="", help="Only models tagged with this benchmark task.", shell_complete=complete_tasks
)
@limit_option("models")
@json_option
def models(search: str, tag: str, task: str, limit: int) -> None:
    """List models on the hub with the platform's tag, newest first.

    \b
    collidium models
    collidium models --task tracking --json
    """
    with client() as server:
        found = server.models(search=search, tag=tag, task=task, limit=limit).items
    columns = {
        "model": "model_repo",
        "tasks": "tasks",
        "tags": "tags",
        "downloads": "downloads",
        "likes": "likes",
        "updated": "updated_at",
    }
    show_items(found, columns)


@click.command()
@click.argument("task", shell_complete=complete_tasks)
@limit_option("ranks")
@click.option("--pareto", is_flag=True, help="Only the Pareto front, of a task with two competing metrics.")
@click.option("--user", metavar="NAME", help="Only ranks of this account.")
@click.option("--model", metavar="NAMESPACE/NAME", help="Only ranks of this hub model.")
@click.option(
    "--all", "every", is_flag=True, help="All submissions with their ids, not only each participant's best."
)
@click.option(
    "--self-reported",
    is_flag=True,
    help="Self-reported submissions, which are unranked because the platform did not run them.",
)
@click.option("--history", is_flag=True, help="Show the successive best scores instead of ranks.")
@click.option("--metric", metavar="METRIC", help="With --history: the metric; default: the primary one.")
@json_option
def leaderboard(
    task: str,
    limit: int,
    pareto: bool,
    user: str | None,
    model: str | None,
    every: bool,
    self_reported: bool,
    history: bool,
    metric: str | None,
) -> None:
    """Show the leaderboard of TASK, or of a challenge: each participant's best submission, best first.

    \b
    collidium leaderboard tracking
    collidium leaderboard tracking --limit 100 --json
    collidium leaderboard tracking --user anna --all
    collidium leaderboard tracking_small --pareto
    collidium leaderboard tracking_small --self-reported
    collidium leaderboard tracking_small --history --metric physics_eff_pt1
    """
    if (history or self_reported) and (pareto or user or model or every or history is self_reported):
        raise click.UsageError(
            "--history and --self-reported cannot be combined with each other or with filters"
        )
    if metric and not history:
        raise click.UsageError("--metric needs --history")
    with client() as server:
        if self_reported:
            listed = server.self_reported(task, limit=limit).items
            cards = {} if json_wanted() else {card.name: card for card in server.tasks()}
            show_items(listed, submissions.self_reported(cards))
        elif history:
            steps = server.leaderboard_history(task, metric, limit=limit).items

            def print_history(_: object) -> None:
                card = server.task(task)
                named = next(one for one in card.metrics if one.name == (metric or card.primary_metric))
                print_items(steps, boards.history(named))

            show_value(steps, print_history)
        else:
            places = server.leaderboard(
                task, limit=limit, pareto=pareto, user=user, model_repo=model, every=every
            ).items
            show_value(places, lambda places: print_places(server.task(task), places, ids=every))
