"""``collidium tasks``, ``leaderboard`` and ``models``, and the cells of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeVar

import click

from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option, limit_option
from collidium.cli.output import (
    ColumnSpec,
    cell,
    json_wanted,
    note,
    print_paragraph,
    print_record,
    print_table,
    printable,
    show_items,
    show_value,
)
from collidium.contracts.card import in_digits

if TYPE_CHECKING:
    from collidium.client import (
        BestStep,
        LocalScores,
        Metric,
        Place,
        PredictionColumn,
        Quota,
        Receipt,
        Submission,
        TaskCard,
    )
    from collidium.contracts.card import Metric as ContractMetric
    from collidium.contracts.task import Column

Item = TypeVar("Item")

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


def print_card(card: TaskCard, more: Mapping[str, object], reason: str | None) -> None:
    """Print a card with ``more`` rows; ``reason`` is why the task accepts no submissions."""
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
    """Yield a description of the training and evaluation data, and the command that downloads each."""
    from collidium.hub.downloads import size_text

    for name, data in (("Training", card.training_data), ("Evaluation", card.evaluation_data)):
        if data is not None:
            at = f"{data.repository} at {data.revision[:12]}, {data.config}"
            events = f"events {data.events.start}:{data.events.stop}"
            yield f"{name} data: {at}, {events}, {size_text(data.bytes)}", data.download


def _sentences(card: TaskCard) -> Iterator[str]:
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


def _formula(metric: Metric) -> str:
    return f"{metric.formula} ({metric.source})" if metric.source else metric.formula


def _metric(metric: Metric, *, primary: bool) -> tuple[object, ...]:
    marks = [mark for mark, holds in (("primary", primary), ("self-reported", metric.self_reported)) if holds]
    name = f"{metric.name} ({', '.join(marks)})" if marks else metric.name
    earns = (metric.reward, metric.floor) if metric.reward else (None, None)
    return name, "higher" if metric.higher_is_better else "lower", *earns, metric.description


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
            show_items(listed, _self_reported_columns(cards))
        elif history:
            steps = server.leaderboard_history(task, metric, limit=limit).items
            show_value(steps, lambda steps: print_history(server.task(task), metric, steps))
        else:
            places = server.leaderboard(
                task, limit=limit, pareto=pareto, user=user, model_repo=model, every=every
            ).items
            show_value(places, lambda places: print_places(server.task(task), places, ids=every))


def scores_cell(cards: Mapping[str, TaskCard]) -> Callable[[Submission], list[str]]:
    """Return what formats all scores of a submission, by the cards of tasks that are listed."""
    return lambda sent: [
        f"{metric} {score_cell(sent, metric, card.metrics if (card := cards.get(sent.task)) else ())}"
        for metric in sent.scores
    ]


def _self_reported_columns(cards: Mapping[str, TaskCard]) -> dict[str, ColumnSpec]:
    return {
        "account": "hub_username",
        "scores": scores_cell(cards),
        "no rank because": "unranked",
        "submitted": "submitted_at",
        "submission": "submission_id",
    }


def print_history(card: TaskCard, metric: str | None, steps: Sequence[BestStep]) -> None:
    """Print the successive best scores of a metric, by default the primary one."""
    shown = next(m for m in card.metrics if m.name == (metric or card.primary_metric))
    columns: _Columns[BestStep] = [
        ("since", lambda step: step.submitted_at),
        ("account", lambda step: step.hub_username),
        (_heading(shown), lambda step: value_cell(step.value, step.uncertainty, shown)),
    ]
    if shown.self_reported:
        columns.append(("verified", lambda step: step.verified_at is not None))
    columns.append(("model", model_cell))
    _print_columns(columns, steps)


def print_places(
    card: TaskCard, places: Sequence[Place], *, title: str | None = None, ids: bool = False
) -> None:
    """Print the places of a leaderboard, with the ids of the submissions if ``ids``."""
    columns: _Columns[Place] = [
        ("rank", lambda place: None if place.baseline else place.rank),
        ("account", _name_cell),
    ]
    columns += [
        (
            metric.name if card.ranks_measured else _heading(metric),
            partial(
                score_cell,
                metric=metric.name,
                metrics=card.metrics if card.ranks_measured or not metric.self_reported else (),
            ),
        )
        for metric in card.metrics
    ]
    if card.pareto:
        columns.append(("Pareto front", lambda place: "yes" if place.pareto else ""))
    if any(metric.self_reported for metric in card.metrics):
        columns.append(
            ("verified", lambda place: "measured" if place.model else place.verified_at is not None)
        )
    columns += [
        ("credits", lambda place: place.credits_earned),
        ("model", model_cell),
        ("submitted", lambda place: place.submitted_at),
    ]
    if ids:
        columns.append(("submission", lambda place: place.submission_id))
    _print_columns(columns, places, title)
    if any(place.baseline for place in places):
        note("Baselines take no rank.")


#: Headings, which may be names of metrics, and the cell of each.
_Columns = list[tuple[str, Callable[[Item], object]]]


def _print_columns(columns: _Columns[Item], items: Sequence[Item], title: str | None = None) -> None:
    rows = ([cell_of(item) for _, cell_of in columns] for item in items)
    print_table([heading for heading, _ in columns], rows, title=title)


def _heading(metric: Metric) -> str:
    return f"{metric.name} (self-reported)" if metric.self_reported else metric.name


def _name_cell(place: Place) -> str:
    if place.baseline:
        return f"{place.hub_username} (baseline)"
    from collidium.presentation.scores import team_word

    return f"{place.hub_username}, {team_word(place.team)}{place.team}" if place.team else place.hub_username


def score_cell(
    scored: Place | Submission | Receipt | LocalScores,
    metric: str,
    metrics: Iterable[Metric | ContractMetric],
) -> str:
    """Format the score of a metric by the metrics of its task; "-" if there is none."""
    # Not at the top: only some commands load the client library.
    from collidium.presentation.scores import submitted_score

    return submitted_score(scored, metric, metrics) if metric in scored.scores else cell(None)


def model_cell(linked: Place | Submission | BestStep | Receipt) -> str | None:
    """Return the model, and whether the account's claim to it is verified; None without a model."""
    return linked.model_repo and f"{linked.model_repo} ({linked.model_claim})"


def value_cell(score: float | None, error: float | None, metric: Metric | None = None) -> str:
    """Format a score and its standard error; with its metric also that the error is unknown."""
    from collidium.presentation.scores import score_text

    return cell(None) if score is None else score_text(score, error, metric)


def print_quota(quota: Quota) -> None:
    """Print how many submissions are left."""
    from collidium.presentation.challenges import quota_text

    note(quota_text(quota))
