"""``collidium leaderboard``: who leads a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import cell, json_option, print_json, print_table

if TYPE_CHECKING:
    from collidium.client import Place, Submission, TaskCard


@click.command()
@click.argument("task")
@limit_option("places")
@click.option(
    "--pareto", is_flag=True, help="Only the Pareto front, of a task that trades two metrics for each other."
)
@json_option
def leaderboard(task: str, limit: int, pareto: bool, as_json: bool) -> None:
    """Show the leaderboard of TASK, best first.

    \b
    collidium leaderboard tracking
    collidium leaderboard tracking --limit 100 --json
    collidium leaderboard tracking_small --pareto
    """
    with client() as server:
        places = server.leaderboard(task, limit=limit, pareto=pareto)
        if as_json:
            print_json(places.items)
        else:
            print_places(server.task(task), places.items)


def print_places(card: TaskCard, places: Sequence[Place], *, title: str | None = None) -> None:
    """The places as a table, metrics in the order of the card."""
    metrics = [metric.name for metric in card.metrics]
    headings = [f"{m.name} (self-reported)" if m.self_reported else m.name for m in card.metrics]
    verified = ("verified",) if any(metric.self_reported for metric in card.metrics) else ()
    front = ("Pareto front",) if card.pareto else ()
    print_table(
        ("rank", "account", *headings, *front, *verified, "credits", "model", "submitted"),
        (
            (
                place.rank,
                place.hub_username,
                *(score_cell(place, metric) for metric in metrics),
                *("yes" if place.pareto else "" for _ in front),
                *(place.verified_at is not None for _ in verified),
                place.credits_earned,
                place.model_repo,
                place.submitted_at,
            )
            for place in places
        ),
        title=title,
    )


def score_cell(scored: Place | Submission, metric: str) -> str:
    """A score and its standard error, of which two digits say enough."""
    score, error = scored.scores.get(metric), scored.uncertainties.get(metric)
    return cell(score) if score is None or error is None else f"{cell(score)} ± {error:.2g}"
