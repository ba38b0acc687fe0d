"""``collidium tasks``, ``leaderboard`` and ``models``: what may be submitted to, who leads, models shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option, limit_option
from collidium.cli.output import (
    ColumnSpec,
    cell,
    note,
    print_json,
    print_paragraph,
    print_record,
    print_table,
    printable,
    show_items,
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


@click.command()
@click.argument("task", shell_complete=complete_tasks)
@limit_option("ranks")
@click.option("--pareto", is_flag=True, help="Only the Pareto front, of a task with two competing metrics.")
@click.option("--user", metavar="NAME", help="Only ranks of this account.")
@click.option("--model", metavar="NAMESPACE/NAME", help="Only ranks of this hub model.")
@click.option(
    "--all", "every", is_flag=True, help="Every submission with its id, not each participant's best."
)
@click.option(
    "--self-reported",
    is_flag=True,
    help="Self-reported submissions, which have no rank: the platform did not run them.",
)
@click.option("--history", is_flag=True, help="Show the successive best scores instead of the ranks.")
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
    as_json: bool,
) -> None:
    """Show the leaderboard of TASK, or of a challenge: the best of each participant, best first.

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
            "--history and --self-reported are of the whole leaderboard, and not of each other"
        )
    if metric and not history:
        raise click.UsageError("--metric needs --history")
    with client() as server:
        if self_reported:
            apart = server.self_reported(task, limit=limit).items
            show_items(apart, _APART_COLUMNS, as_json=as_json)
            return
        if history:
            steps = server.leaderboard_history(task, metric, limit=limit)
            print_json(steps.items) if as_json else print_history(server.task(task), metric, steps.items)
            return
        places = server.leaderboard(
            task, limit=limit, pareto=pareto, user=user, model_repo=model, every=every
        )
        print_json(places.items) if as_json else print_places(server.task(task), places.items, ids=every)


_APART_COLUMNS: Final[dict[str, ColumnSpec]] = {
    "account": "hub_username",
    "scores": lambda sent: [f"{metric} {score_cell(sent, metric)}" for metric in sent.scores],
    "no rank because": "unranked",
    "submitted": "submitted_at",
    "submission": "submission_id",
}


def print_history(card: TaskCard, metric: str | None, steps: Sequence[BestStep]) -> None:
    """The successive best scores as a table."""
    shown = next(m for m in card.metrics if m.name == (metric or card.primary_metric))
    verified = ("verified",) if shown.self_reported else ()
    print_table(
        ("since", "account", f"{shown.name} (self-reported)" if verified else shown.name, *verified, "model"),
        (
            (
                step.submitted_at,
                step.hub_username,
                value_cell(step.value, step.uncertainty),
                *(step.verified_at is not None for _ in verified),
                model_cell(step),
            )
            for step in steps
        ),
    )


def print_places(
    card: TaskCard, places: Sequence[Place], *, title: str | None = None, ids: bool = False
) -> None:
    """The places as a table, metrics in the order of the card; ``ids``: with those of the submissions."""
    metrics = [metric.name for metric in card.metrics]
    headings = [f"{m.name} (self-reported)" if m.self_reported else m.name for m in card.metrics]
    verified = ("verified",) if any(metric.self_reported for metric in card.metrics) else ()
    front = ("Pareto front",) if card.pareto else ()
    number = ("submission",) if ids else ()
    print_table(
        ("rank", "account", *headings, *front, *verified, "credits", "model", "submitted", *number),
        (
            (
                place.rank,
                _name_cell(place),
                *(score_cell(place, metric) for metric in metrics),
                *("yes" if place.pareto else "" for _ in front),
                *("measured" if place.model else place.verified_at is not None for _ in verified),
                place.credits_earned,
                model_cell(place),
                place.submitted_at,
                *(place.submission_id for _ in number),
            )
            for place in places
        ),
        title=title,
    )
    if any(place.baseline for place in places):
        note("Baselines take no rank: theirs is the one that a participant with that score would have.")


def _name_cell(place: Place) -> str:
    if place.baseline:
        return f"{place.hub_username} (baseline)"
    from collidium.client.quantities import team_word

    return f"{place.hub_username}, {team_word(place.team)}{place.team}" if place.team else place.hub_username


def score_cell(scored: Place | Submission | Receipt | LocalScores, metric: str) -> str:
    """The score of a metric with its standard error; "-" where there is none."""
    return value_cell(scored.scores.get(metric), scored.uncertainties.get(metric))


def model_cell(linked: Place | Submission | BestStep | Receipt) -> str | None:
    """The model and whether the account's claim to it is verified; None without a model."""
    return linked.model_repo and f"{linked.model_repo} ({linked.model_claim})"


def value_cell(score: float | None, error: float | None) -> str:
    """A score and its standard error, as the pages write them."""
    # The client library is loaded by the commands that use it only.
    from collidium.client.quantities import written

    return cell(None) if score is None else written(score, error)


def show_quota(quota: Quota) -> None:
    """Note what is left to submit."""
    from collidium.client.quantities import quota_text

    note(quota_text(quota))
