"""``collidium score``: score predictions on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client, training_data
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
from collidium.cli.output import note, print_record, show_value
from collidium.cli.printing import print_scores
from collidium.cli.progress import progress_bars
from collidium.errors import CollidiumError, InvalidInput, UnusableDataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collidium.contracts.task import EventRange
    from collidium.records import BinnedScore, LocalScores

#: The label of the progress bar of each step, and whether it counts bytes.
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
    help="Dataset with the truth: a directory, or a repository on the hub; default: the training data of the "
    "task or challenge on the server.",
)
@config_option
@events_option("Events to score; default: from the first to the last event of FILE.")
@truth_option
@click.option(
    "--seed",
    default="",
    metavar="TEXT",
    help="Draw other events for the standard errors.",
)
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
    seed: str,
    plots: Path | None,
    cache: Path | None,
    hub: str | None,
    revision: str | None,
) -> None:
    """Score FILE, a parquet file of predictions, on this machine, on events with truth.

    Checks, scores and curves are those of a server; standard errors differ within their own accuracy. The
    server is called only for a challenge or without --from. Choose events that your model was not trained on.

    \b
    collidium score tracking predictions.parquet --from ./ttbar
    collidium score jets-2027 predictions.parquet
    collidium score jets predictions.parquet --from alice/odd-ttbar --events 0:1000 --plots
    """
    from collidium.client import score as score_here

    click.get_current_context().find_root().obj.check = None  # no advice to check the file
    if plots is not None:
        _figure()  # fails early without matplotlib
    task = name
    if source is None or "-" in name:  # only names of challenges have hyphens
        with client() as server:
            task = server.task(name).name
    if source is None:
        found = training_data(name, hub, config, revision)
        if found is None:
            raise InvalidInput(f"{name} has no training data: name a dataset with --from")
        source, hub, config, revision = found
    place = locate_source(source, hub, revision)
    try:
        with progress_bars(_BARS) as progress:
            scored = score_here(
                task,
                file,
                truth_from=place,
                config=config,
                events=events,
                options=parse_options(options),
                seed=seed,
                cache=cache,
                progress=progress,
            )
    except UnusableDataset as error:
        if events is None and any(item.get("field") == "events" for item in error.errors):
            hint = "these seem to be the evaluation events, whose truth only the server has"
            command = shlex.join(["collidium", "submit", name, str(file)])
            raise UnusableDataset(f"{error.detail}; {hint}: {command}") from error
        raise
    show_value(scored, _print_scored)
    if plots is not None:
        for path in _write_plots(scored.curves, plots):
            note(f"Wrote {path}")


def _print_scored(scored: LocalScores) -> None:
    from collidium import plugins

    print_scores(scored, plugins.load().tasks().find(scored.task).card.metrics)
    print_record(
        {
            "task": scored.task,
            "events": f"{scored.events.start}:{scored.events.stop}",
            "dataset": scored.dataset,
            "revision": scored.dataset_revision,
            "rows": scored.rows,
            "scorer, truth": (scored.scorer_version, scored.truth_version),
        }
    )
    for warning in scored.warnings:
        note(f"Warning: {warning}")


def _write_plots(curves: Sequence[BinnedScore], directory: Path) -> Iterator[Path]:
    """Write a PNG of each curve, and yield its path."""
    if not curves:
        note("No plots: the score has no curves, for which these may be too few events.")
        return
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
