"""Plots of a leaderboard, each with a text and a table of its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf
from typing import Final

from msgspec import structs

from collidium.client import BestStep, BinnedScore, Metric, Place, Submission, TaskCard
from collidium.presentation.quantities import written
from collidium.presentation.scores import rank_text, score_text
from collidium_plugins.webapps import charts
from collidium_plugins.webapps.charts import Datum, Plot, Scale

#: Measurements of models that the server ran.
_COSTS: Final = (
    Metric("n_params", higher_is_better=False, description="Numbers in the file.", title="Parameters"),
    Metric("seconds", higher_is_better=False, description="CPU seconds of an event.", title="CPU seconds"),
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot with a description and a table of its values."""

    #: Unique on the page.
    id: str
    title: str
    text: str
    #: None for a single value.
    plot: Plot | None
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    #: Whether some points are marked as self-reported and not verified.
    has_doubtful: bool = False


def history(metric: Metric, steps: Sequence[BestStep], now: datetime) -> Drawing:
    """The best value of a metric over time, from its last steps; there must be at least one."""
    data = [
        Datum(
            x=step.submitted_at.timestamp(),
            y=step.value,
            y_error=step.uncertainty,
            text=f"{step.hub_username}: {_value(metric, step)}, {_day(step.submitted_at)}",
            kind=_kind(metric, step),
        )
        for step in steps
    ]
    return Drawing(
        id=f"best-{metric.name}",
        title=f"{_title(metric)} over time",
        text=_history_text(metric, steps),
        plot=_history_plot(metric, steps, data, now) if len(steps) > 1 else None,
        headings=("Since", "Account", metric.name),
        rows=[
            (
                _day(step.submitted_at),
                step.hub_username,
                _value(metric, step) + _doubt(metric, step),
            )
            for step in reversed(steps)
        ],
        has_doubtful=any(datum.kind for datum in data),
    )


def _history_plot(metric: Metric, steps: Sequence[BestStep], data: Sequence[Datum], now: datetime) -> Plot:
    x = charts.scale_of_times([steps[0].submitted_at, max(now, steps[-1].submitted_at)])
    return charts.plot(
        data,
        x=(_time_name(steps[0].submitted_at, now), x),
        y=(_axis_name(metric), _scale([(datum.y, datum.y_error) for datum in data])),
        corners=charts.step_line(data, now.timestamp()),
    )


def front(card: TaskCard, on_front: Sequence[Place], best: Sequence[Place]) -> Drawing:
    """The Pareto front of two metrics, and the best other places."""
    assert card.pareto is not None  # noqa: S101 -- checked by the caller
    named = {metric.name: metric for metric in card.metrics}
    y, x = (named[name] for name in card.pareto)
    placed = {place.submission_id: place for place in (*best, *on_front)}.values()
    data = [datum for place in placed if (datum := _traded(place, x, y)) is not None]
    ours = [datum for datum in data if datum.kind == "front"]
    return Drawing(
        id=f"front-{x.name}",
        title=f"Pareto front: {_title(y)} and {_title(x)}",
        text=f"{len(ours)} of the places shown are on the front: no other is at least as good in both "
        "metrics and better in one.",
        plot=charts.plot(
            data,
            x=(_axis_name(x), _scale([(datum.x, datum.x_error) for datum in data])),
            y=(_axis_name(y), _scale([(datum.y, datum.y_error) for datum in data])),
            corners=charts.staircase(ours, less_x_is_better=not x.higher_is_better),
        ),
        headings=("Rank", "Account", y.name, x.name),
        rows=[
            (
                rank_text(place),
                place.hub_username,
                *(_score(place, metric) for metric in (y, x)),
            )
            for place in on_front
        ],
    )


def _score(place: Place, metric: Metric) -> str:
    value, error = place.scores.get(metric.name), place.uncertainties.get(metric.name)
    return written(value, error) if metric in _COSTS else score_text(value, error, metric)


def of_models(card: TaskCard, best: Sequence[Place]) -> list[Drawing]:
    """The primary metric against size and speed of models that the server ran."""
    found = []
    quality = next(metric for metric in card.metrics if metric.name == card.primary_metric)
    for cost in _COSTS:
        ran = [placed for place in best if (placed := _with_cost(place, quality, cost)) is not None]
        if not ran or card.pareto == (quality.name, cost.name):
            continue
        sign = -1 if quality.higher_is_better else 1
        points = [(place.scores[cost.name], sign * place.scores[quality.name]) for place in ran]
        undominated, lowest = set(), inf
        for point in sorted(set(points)):
            if point[1] < lowest:
                undominated.add(point)
                lowest = point[1]
        ran = [
            structs.replace(place, pareto=point in undominated)
            for place, point in zip(ran, points, strict=True)
        ]
        traded = structs.replace(card, metrics=(quality, cost), pareto=(quality.name, cost.name))
        found.append(front(traded, [place for place in ran if place.pareto], ran))
    return found


def _with_cost(place: Place, quality: Metric, cost: Metric) -> Place | None:
    """Add the cost of the place's model to its scores; None if it was not measured."""
    value = getattr(place.model, cost.name, None)
    if value is None or place.scores.get(quality.name) is None:
        return None
    errors = {cost.name: error} if (error := getattr(place.model, f"{cost.name}_error", None)) else {}
    return structs.replace(
        place, scores={**place.scores, cost.name: value}, uncertainties={**place.uncertainties, **errors}
    )


def curves(submission: Submission, other: Submission | None) -> list[Drawing]:
    """The binned scores of a submission, compared with those of another one."""
    drawn = [submission, other] if other else [submission]
    return [
        _curve([(one.hub_username, each) for one in drawn for each in one.curves if each.name == curve.name])
        for curve in submission.curves
    ]


def _curve(curves: Sequence[tuple[str, BinnedScore]]) -> Drawing:
    curve = curves[0][1]
    data = [datum for _, other in curves[1:] for datum in _in_bins(other, "other")] + _in_bins(curve, "")
    return Drawing(
        id=f"curve-{curve.name}",
        title=f"{curve.title} against {curve.quantity}",
        text=f"In {len(curve.values)} bins: {written(min(curve.values))} to {written(max(curve.values))}.",
        plot=charts.plot(
            data,
            x=(curve.quantity, charts.linear_scale(curve.edges)),
            y=(curve.title, _of_fractions(data)),
        ),
        headings=("Submission of", curve.quantity, curve.title),
        rows=[(name, *datum.text.split(": ")) for name, each in curves for datum in _in_bins(each, "")],
    )


def _of_fractions(data: Sequence[Datum]) -> Scale:
    """A logarithmic scale if all values are positive and span decades, as background efficiencies do."""
    ends = [(datum.y, datum.y + side * (datum.y_error or 0)) for datum in data for side in (-1, 1)]
    if min(value for value, _ in ends) > 0:
        scale = charts.scale_of_values([max(end, value / 3) for value, end in ends])
        if scale.logarithmic:
            return scale
    return charts.linear_scale([end for _, end in ends])


def _in_bins(curve: BinnedScore, kind: str) -> list[Datum]:
    return [
        Datum(
            x=(low + high) / 2,
            y=value,
            x_error=(high - low) / 2,
            y_error=error,
            text=f"{written(low)} to {written(high)}: {written(value, error)}",
            kind=kind,
        )
        for (low, high), value, error in zip(pairwise(curve.edges), curve.values, curve.errors, strict=True)
    ]


def _traded(place: Place, x: Metric, y: Metric) -> Datum | None:
    across, up = place.scores.get(x.name), place.scores.get(y.name)
    if across is None or up is None:
        return None
    return Datum(
        x=across,
        y=up,
        x_error=place.uncertainties.get(x.name),
        y_error=place.uncertainties.get(y.name),
        text=f"{rank_text(place)}. {place.hub_username}: {written(up)}, {written(across)}",
        kind="front" if place.pareto else "other",
    )


def _scale(values: Iterable[tuple[float, float | None]]) -> Scale:
    """A scale that includes error bars, unless they alone prevent a logarithmic scale."""
    pairs = list(values)
    plain = [value for value, _ in pairs]
    wide = [value + side * (error or 0.0) for value, error in pairs for side in (-1, 1)]
    return charts.scale_of_values(plain if plain and min(plain) > 0 >= min(wide) else wide)


def _kind(metric: Metric, step: BestStep) -> str:
    return "doubtful" if metric.self_reported and step.verified_at is None else ""


def _doubt(metric: Metric, step: BestStep) -> str:
    return " (self-reported, not verified)" if _kind(metric, step) else ""


def _history_text(metric: Metric, steps: Sequence[BestStep]) -> str:
    end = _step(metric, steps[-1])
    if len(steps) == 1:
        return f"One step so far: {end}{_doubt(metric, steps[0])}."
    return f"The last {len(steps)} steps lead from {_step(metric, steps[0])} to {end}."


def _value(metric: Metric, step: BestStep) -> str:
    return score_text(step.value, step.uncertainty, metric)


def _step(metric: Metric, step: BestStep) -> str:
    return f"{_value(metric, step)} ({step.hub_username}, {_day(step.submitted_at)})"


def _title(metric: Metric) -> str:
    return metric.title or metric.name.replace("_", " ")


def _axis_name(metric: Metric) -> str:
    return f"{_title(metric)} {'↑' if metric.higher_is_better else '↓'}"


def _time_name(begin: datetime, end: datetime) -> str:
    """The time zone, with the date if the ticks show hours."""
    return f"UTC, {end.astimezone(UTC):%-d %b %Y}" if end - begin < timedelta(days=2) else "UTC"


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"
