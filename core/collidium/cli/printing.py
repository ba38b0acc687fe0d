"""Printing of records that several commands show; what is shown of them is in `collidium.presentation`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from collidium.cli.output import (
    cell,
    note,
    print_items,
    print_paragraph,
    print_record,
    print_table,
    printable,
    show_value,
)
from collidium.order import order_text
from collidium.presentation import evaluations, places, requests, tasks
from collidium.presentation.quantities import minute_text, written
from collidium.presentation.scores import submitted_score
from collidium.records import NO_EVENTS

if TYPE_CHECKING:
    from collidium.client import Client
    from collidium.contracts.card import Metric as ContractMetric
    from collidium.records import (
        Evaluation,
        Invitation,
        LocalScores,
        Metric,
        Place,
        Receipt,
        SimulationRequest,
        Submission,
        TaskCard,
    )


def print_card(card: TaskCard, more: Mapping[str, object], reason: str | None) -> None:
    """Print a card with ``more`` rows; ``reason`` is why the task accepts no submissions."""
    print_record(tasks.facts(card, more, reason))
    print_paragraph(card.description)
    for text, command in tasks.data_lines(card):
        click.echo(printable(text))
        click.echo(f"  {printable(command)}\n")
    click.echo("Predict one table with these columns:\n")
    print_table(("column", "kind", "meaning"), map(tasks.column_cells, card.columns))
    click.echo()
    print_table(
        ("metric", "better", "reward", "floor", "meaning"),
        (tasks.metric_cells(metric, primary=metric.name == card.primary_metric) for metric in card.metrics),
    )
    if formulas := {metric.name: tasks.formula_text(metric) for metric in card.metrics if metric.formula}:
        click.echo()
        print_record(formulas)
    print_paragraph(" ".join(tasks.sentences(card)))


def print_places(
    card: TaskCard, found: Sequence[Place], *, title: str | None = None, ids: bool = False
) -> None:
    """Print the places of a leaderboard, with the ids of the submissions if ``ids``."""
    print_items(found, places.in_commands(card, ids=ids), title=title)
    if any(place.baseline for place in found):
        note(places.ABOUT_BASELINES)


def print_scores(scored: LocalScores | Submission, metrics: Iterable[Metric | ContractMetric]) -> None:
    """Print scores with their standard errors, and binned scores."""
    print_score_table(scored, metrics)
    for curve in scored.curves:
        rows = zip(pairwise(curve.edges), curve.values, curve.errors, strict=True)
        print_table(
            (curve.quantity, curve.title),
            (
                (f"{written(low)} to {written(high)}", written(value, error))
                for (low, high), value, error in rows
            ),
        )


def print_score_table(
    scored: LocalScores | Submission | Receipt, metrics: Iterable[Metric | ContractMetric]
) -> None:
    """Print scores with their standard errors."""
    known = tuple(metrics)
    rows = ((metric, submitted_score(scored, metric, known)) for metric in scored.scores)
    print_table(("metric", "score"), rows)


def show_evaluation(server: Client, found: Evaluation, *, wait: bool) -> None:
    """Print an evaluation. With ``wait``, wait until it has ended, and exit with 1 unless it is scored."""
    if wait and not found.has_ended:
        found = server.wait_for_model(
            found.evaluation_id, on_change=lambda seen: note(f"The model is {evaluations.state_text(seen)}.")
        )
    show_value(found, _print_evaluation)
    if wait and found.state != "scored":
        raise SystemExit(1)


def _print_evaluation(found: Evaluation) -> None:
    print_record(evaluations.facts(found))
    if found.submission_id:
        click.echo(printable(f"`collidium submissions {found.submission_id}` shows its scores."))


def print_request(request: SimulationRequest) -> None:
    """Print a request with its timeline."""
    refunded = f", {cell(request.credits_refunded)} refunded" if request.credits_refunded else ""
    print_record(
        {
            "request": request.request_id,
            "order": order_text(request),
            "state": requests.state_text(request),
            "reason": request.reason,
            "credits": f"{cell(request.credits_charged)} charged{refunded}",
            "node-hours": request.node_hours,
            "output": NO_EVENTS if request.runner_is_mock else request.output_hub_repo,
        }
    )
    if request.timeline:
        print_items(request.timeline, requests.TIMELINE, title="Timeline")


def show_invitation(server: Client, made: Invitation) -> None:
    """Print an invitation, with its code on the last line. It is not shown again."""
    show_value(made, partial(_print_invitation, server))


def _print_invitation(server: Client, made: Invitation) -> None:
    uses = f"Valid {made.uses} times" if made.uses > 1 else "Valid once"
    note(f"{uses}, until {minute_text(made.expires_at)}: collidium team join {made.challenge} {made.code}")
    note(f"Or in a browser: {server.backend}/leaderboard/{made.challenge}/team?invitation={made.code}")
    click.echo(made.code)
