"""A task's card for people: what to predict, and what it earns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.output import print_paragraph, print_record, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collidium.benchmarks.cards import ListedCard, ListedMetric
    from collidium.client import Metric, TaskCard


def print_card(card: TaskCard | ListedCard, more: Mapping[str, object], reason: str | None) -> None:
    """The card with whatever else is known of the task; ``reason`` is why it takes no submissions."""
    print_record(
        {
            "task": card.name,
            "title": card.title,
            "dataset": card.dataset,
            "events": f"{card.eval_events.start}:{card.eval_events.stop}",
            "inputs": card.inputs,
            **({"phase": f"{card.phase}, {card.public_percent} % are public"} if card.phase else {}),
            **more,
            "takes submissions": "yes" if reason is None else f"no: {reason}",
        }
    )
    print_paragraph(card.description)
    click.echo("Predict one table with these columns:\n")
    print_table(("column", "kind", "meaning"), ((c.name, c.kind, c.description) for c in card.columns))
    click.echo()
    print_table(
        ("metric", "better", "reward", "floor", "meaning"),
        (_metric(metric, primary=metric.name == card.primary_metric) for metric in card.metrics),
    )
    click.echo(
        f"\nThe leaderboard goes by {card.primary_metric}. A new best above the floor earns the reward."
    )


def _metric(metric: Metric | ListedMetric, *, primary: bool) -> tuple[object, ...]:
    marks = [mark for mark, holds in (("primary", primary), ("self-reported", metric.self_reported)) if holds]
    name = f"{metric.name} ({', '.join(marks)})" if marks else metric.name
    earns = (metric.reward, metric.floor) if metric.reward else (None, None)
    return name, "higher" if metric.higher_is_better else "lower", *earns, metric.description
