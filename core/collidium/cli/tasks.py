"""``collidium tasks`` and ``models``: what may be submitted to, and what others share on the hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option, limit_option
from collidium.cli.output import (
    ColumnSpec,
    print_json,
    print_paragraph,
    print_record,
    print_table,
    printable,
    show_items,
)
from collidium.contracts.card import in_digits

if TYPE_CHECKING:
    from collidium.client import Metric, PredictionColumn, TaskCard
    from collidium.contracts.task import Column

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
def tasks(name: str | None, as_json: bool) -> None:
    """List the tasks of the server, or show the card of task NAME: what to predict and how it is scored.

    \b
    collidium tasks
    collidium tasks tracking
    """
    with client() as server:
        found = server.tasks().items if name is None else server.task(name)
    if isinstance(found, tuple):
        show_items(found, _COLUMNS, as_json=as_json)
    elif as_json:
        print_json(found)
    else:
        closed = f"not now (collidium challenge show {name})"
        missing = "the server has no truth for it yet"
        reason = None if found.accepts_submissions else closed if found.truth_version else missing
        print_card(found, {"scorer": found.scorer_version, "truth": found.truth_version}, reason)


def print_card(card: TaskCard, more: Mapping[str, object], reason: str | None) -> None:
    """The card with ``more`` rows; ``reason`` is why the task accepts no submissions."""
    print_record(
        {
            "task": card.name,
            "title": card.title,
            "dataset": card.dataset,
            "events": f"{card.eval_events.start}:{card.eval_events.stop}",
            "inputs": card.inputs,
            **({"phase": f"{card.phase}, {card.public_percent} % are public"} if card.phase else {}),
            **more,
            "accepts submissions": "yes" if reason is None else f"no: {reason}",
        }
    )
    print_paragraph(card.description)
    for text, command in data_lines(card):
        click.echo(printable(text))
        click.echo(f"  {printable(command)}\n")
    click.echo("Predict one table with these columns:\n")
    print_table(("column", "kind", "meaning"), map(column_cells, card.columns))
    click.echo()
    print_table(
        ("metric", "better", "reward", "floor", "meaning"),
        (_metric(metric, primary=metric.name == card.primary_metric) for metric in card.metrics),
    )
    formulas = {metric.name: _formula(metric) for metric in card.metrics if metric.formula}
    if formulas:
        click.echo()
        print_record(formulas)
    print_paragraph(" ".join(_sentences(card)))


def data_lines(card: TaskCard) -> Iterator[tuple[str, str]]:
    """Where the events of a task are, and the command that fetches them."""
    from collidium.hub.downloads import size_text

    for name, data in (("Training", card.training_data), ("Evaluation", card.evaluation_data)):
        if data is not None:
            at = f"{data.repository} at {data.revision[:12]}, {data.config}"
            events = f"events {data.events.start}:{data.events.stop}"
            yield f"{name} data: {at}, {events}, {size_text(data.bytes)}", data.download


def _sentences(card: TaskCard) -> Iterator[str]:
    if card.left_out:
        yield card.left_out
    earns = " A new best above the floor earns the reward." if any(m.reward for m in card.metrics) else ""
    yield f"The leaderboard ranks by {card.primary_metric}.{earns}"
    for metric in card.metrics:
        if metric.missing_when:
            yield f"{metric.name} is undefined when {metric.missing_when}."
    if card.pareto:
        yield f"The leaderboard marks the Pareto front of {card.pareto[0]} and {card.pareto[1]}."


def column_cells(column: PredictionColumn | Column) -> tuple[str, str, str]:
    """Name, kind with its bounds, and meaning."""
    lowest, highest = column.bounds
    kind = column.kind
    if lowest is not None and isfinite(lowest):
        kind += f" from {in_digits(lowest)}"
    if highest is not None and isfinite(highest):
        kind += f" to {in_digits(highest)}"
    return column.name, f"{kind}, one per {column.one_per}" if column.one_per else kind, column.description


def _formula(metric: Metric) -> str:
    return f"{metric.formula} ({metric.source})" if metric.source else metric.formula


def _metric(metric: Metric, *, primary: bool) -> tuple[object, ...]:
    marks = [mark for mark, holds in (("primary", primary), ("self-reported", metric.self_reported)) if holds]
    name = f"{metric.name} ({', '.join(marks)})" if marks else metric.name
    earns = (metric.reward, metric.floor) if metric.reward else (None, None)
    return name, "higher" if metric.higher_is_better else "lower", *earns, metric.description


@click.command()
@click.option("--search", default="", metavar="TEXT", help="Only models with this text in their name.")
@click.option("--tag", default="", help="Only models with this tag.")
@click.option(
    "--task", default="", help="Only models tagged with this benchmark task.", shell_complete=complete_tasks
)
@limit_option("models")
@json_option
def models(search: str, tag: str, task: str, limit: int, as_json: bool) -> None:
    """List models on the hub that have the platform's tag, newest first.

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
    show_items(found, columns, as_json=as_json)
