"""How the card of a task is described: its data, columns, metrics and rules."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from collidium.contracts.card import in_digits
from collidium.presentation.quantities import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collidium.contracts.task import Column
    from collidium.records import Metric, PredictionColumn, TaskCard


def facts(card: TaskCard, more: Mapping[str, object], reason: str | None) -> dict[str, object]:
    """Return what a card says in a word each, with ``more``; ``reason`` is why it accepts no submissions."""
    return {
        "task": card.name,
        "title": card.title,
        "dataset": card.dataset,
        "events": f"{card.eval_events.start}:{card.eval_events.stop}",
        "inputs": card.inputs,
        **({"phase": f"{card.phase}, {card.public_percent} % are public"} if card.phase else {}),
        **more,
        "accepts submissions": "yes" if reason is None else f"no: {reason}",
    }


def data_lines(card: TaskCard) -> Iterator[tuple[str, str]]:
    """Yield a description of the training and evaluation data, and the command that downloads each."""
    for name, data in (("Training", card.training_data), ("Evaluation", card.evaluation_data)):
        if data is not None:
            at = f"{data.repository} at {data.revision[:12]}, {data.config}"
            events = f"events {data.events.start}:{data.events.stop}"
            yield f"{name} data: {at}, {events}, {size_text(data.bytes)}", data.download


def sentences(card: TaskCard) -> Iterator[str]:
    """Yield what is special about a task and its metrics."""
    if card.practice:
        yield f"This leaderboard is {card.practice}."
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
    """Return name, kind with its bounds, and meaning of a column."""
    lowest, highest = column.bounds
    kind = column.kind
    if lowest is not None and isfinite(lowest):
        kind += f" from {in_digits(lowest)}"
    if highest is not None and isfinite(highest):
        kind += f" to {in_digits(highest)}"
    return column.name, f"{kind}, one per {column.one_per}" if column.one_per else kind, column.description


def formula_text(metric: Metric) -> str:
    """Return how a metric is computed, with the publication that defines it."""
    return f"{metric.formula} ({metric.source})" if metric.source else metric.formula


def metric_cells(metric: Metric, *, primary: bool) -> tuple[object, ...]:
    """Return name, better direction, reward, floor and meaning of a metric."""
    marks = [mark for mark, holds in (("primary", primary), ("self-reported", metric.self_reported)) if holds]
    name = f"{metric.name} ({', '.join(marks)})" if marks else metric.name
    earns = (metric.reward, metric.floor) if metric.reward else (None, None)
    return name, "higher" if metric.higher_is_better else "lower", *earns, metric.description
