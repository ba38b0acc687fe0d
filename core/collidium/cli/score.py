"""``collidium score``: scores predictions on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import (
    DIRECTORY,
    EXISTING_FILE,
    SourceType,
    cache_option,
    complete_installed_tasks,
    config_option,
    events_option,
    hub_options,
    json_option,
    locate_source,
    parse_options,
    truth_option,
)
from collidium.cli.output import note, print_json, print_record, print_table
from collidium.cli.progress import progress_bars
from collidium.cli.tasks import score_cell, value_cell
from collidium.errors import CollidiumError, InvalidInput, UnusableDataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collidium.contracts.task import EventRange
    from collidium.records import BinnedScore, LocalScores, Submission

#: Step -> the label of its bar, and whether it counts bytes.
_BARS: Final = {
    "download": ("Downloading", True),
    "truth": ("Preparing truth (events)", False),
    "score": ("Scoring (events)", False),
}


@click.command()
@click.argument("name", metavar="TASK|CHALLENGE", shell_complete=complete_installed_tasks)
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--from",
    "source",
    type=SourceType(file_okay=False),
    metavar="DIR|REPO",
    help="Dataset with the truth: a directory, or a repository on the hub; default: the events to learn from "
    "that the server's card of the task or challenge names.",
)
@config_option
@events_option("Events to score; default: from the first to the last event of FILE.")
@truth_option
@click.option(
    "--plots",
    type=DIRECTORY,
    is_flag=False,
    flag_value=Path("plots"),
    metavar="[DIR]",
    help="Write a PNG of each curve to DIR, `plots` by default; needs matplotlib.",
)
@cache_option
@hub_options
@json_option
def score(
    name: str,
    file: Path,
    source: str | None,
    config: str | None,
    events: EventRange | None,
    options: tuple[str, ...],
    plots: Path | None,
    cache: Path | None,
    hub: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Score FILE, a parquet file of predictions, on this machine, on events whose truth you have.

    Checks, scores, standard errors and curves are those of a server, which is asked for the card of a
    challenge, or where --from is not given. Choose events that your model has not learned from.

    \b
    collidium score tracking predictions.parquet --from ./ttbar
    collidium score jets-2027 predictions.parquet
    collidium score jets predictions.parquet --from alice/odd-ttbar --events 0:1000 --plots
    """
    from collidium.client import score as score_here

    click.get_current_context().find_root().obj.check = None  # no advice to check the file
    if plots is not None:
        _figure()  # before it takes its time
    task = name
    if source is None or "-" in name:  # as names of challenges have, and no task's
        with client() as server:
            task = server.task(name).name
    if source is None:
        source, hub, config, revision = training_events(name, hub, config, revision)
    place = locate_source(source, hub, revision)
    try:
        with progress_bars(_BARS) as progress:
            made = score_here(
                *(task, file),
                truth_from=place,
                config=config,
                events=events,
                options=parse_options(options),
                cache=cache,
                progress=progress,
            )
    except UnusableDataset as error:
        if events is None and any(item.get("field") == "events" for item in error.errors):
            hint = "these look like the evaluated events, whose truth the server alone has"
            command = shlex.join(["collidium", "submit", name, str(file)])
            raise UnusableDataset(f"{error.detail}; {hint}: {command}") from error
        raise
    print_json(made) if as_json else _show(made)
    if plots is not None:
        for path in _plotted(made.curves, plots):
            note(f"Wrote {path}")


def training_events(
    name: str, hub: str | None, config: str | None, revision: str | None
) -> tuple[str, str, str, str]:
    """The events to learn from of a task or challenge: repository, hub, config and revision.

    Raises InvalidInput where its card names none.
    """
    with client() as server:
        data, backend = server.task(name).training_data, server.backend
    if data is None:
        raise InvalidInput(f"{name} names no events with truth: choose some with --from")
    return (
        data.repository,
        hub or data.hub or f"{backend}/hub",
        config or data.config,
        revision or data.revision,
    )


def _show(made: LocalScores) -> None:
    show_scores(made)
    print_record(
        {
            "task": made.task,
            "events": f"{made.events.start}:{made.events.stop}",
            "dataset": made.dataset,
            "revision": made.dataset_revision,
            "rows": made.rows,
            "scorer, truth": (made.scorer_version, made.truth_version),
        }
    )
    for warning in made.warnings:
        note(f"Warning: {warning}")


def show_scores(scored: LocalScores | Submission) -> None:
    """Print scores with their errors, and those in bins."""
    print_table(("metric", "score"), ((metric, score_cell(scored, metric)) for metric in scored.scores))
    for curve in scored.curves:
        rows = zip(pairwise(curve.edges), curve.values, curve.errors, strict=True)
        print_table(
            (curve.quantity, curve.title),
            (
                (f"{value_cell(low, None)} to {value_cell(high, None)}", value_cell(*value))
                for (low, high), *value in rows
            ),
        )


def _plotted(curves: Sequence[BinnedScore], directory: Path) -> Iterator[Path]:
    """Write a picture of each curve, the file named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    for curve in curves:
        figure = _figure()
        axes = figure.subplots()
        middles = [(low + high) / 2 for low, high in pairwise(curve.edges)]
        halves = [(high - low) / 2 for low, high in pairwise(curve.edges)]
        axes.errorbar(middles, curve.values, yerr=curve.errors, xerr=halves, fmt="o", markersize=3)
        axes.set(xlabel=curve.quantity, ylabel=curve.title)
        axes.grid(alpha=0.3)
        path = directory / f"{curve.name}.png"
        figure.savefig(path, dpi=150)
        yield path


def _figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CollidiumError("--plots needs matplotlib: pip install matplotlib") from error
    return Figure(figsize=(6, 4), layout="constrained")
