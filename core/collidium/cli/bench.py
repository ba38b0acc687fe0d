"""``collidium bench``: measurements on this machine for tasks with self-reported metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import client
from collidium.cli.options import (
    FILE,
    cache_option,
    events_option,
    hub_options,
    json_option,
    locate_source,
    source_argument,
)
from collidium.cli.output import note, print_record, print_table, show_value
from collidium.cli.progress import progress_bar, progress_bars

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.datasets import HubDataset
    from collidium.scoring.bench.data_loading import Slice, Times

#: The task that the measurement is submitted to.
TASK: Final = "data_loading"
#: The label of the progress bar of each source, and whether it counts bytes.
_BARS: Final = {"disk": ("Reading from disk", False), "hub": ("Reading from the hub", False)}


@click.group()
def bench() -> None:
    """Measure on this machine for tasks with self-reported metrics."""


@bench.command("data-loading")
@source_argument()
@click.option("--config", metavar="NAME", help="Dataset config; default: the task's.")
@click.option("--table", metavar="NAME", help="Table to read; default: the task's.")
@events_option("Events to read; default: the task's.")
@click.option(
    "--loader",
    metavar="MODULE:FUNCTION",
    help="Function that reads the events; default: collidium.datasets.load.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Repetitions from disk and from the hub; their median is reported.",
)
@click.option(
    "--output",
    type=FILE,
    metavar="FILE",
    default=Path(f"{TASK}.parquet"),
    show_default=True,
    help="Output file of the predictions.",
)
@cache_option
@hub_options
@json_option
def data_loading(
    source: str,
    config: str | None,
    table: str | None,
    events: EventRange | None,
    loader: str | None,
    repeats: int,
    output: Path,
    cache: Path | None,
    hub: str | None,
    revision: str | None,
) -> None:
    """Measure how fast events of SOURCE, a repository, are read from disk and from its hub.

    Downloads the shards, then reads the events --repeats times from the downloaded files and --repeats times
    over HTTP. Files may be in the system's page cache. Each result is compared with the dataset, outside the
    measured time. Writes one row of predictions for `collidium submit data_loading`.

    \b
    collidium bench data-loading alice/odd-ttbar
    collidium bench data-loading alice/odd-ttbar --loader my_loaders:with_polars
    collidium bench data-loading alice/odd-ttbar --config ttbar_pu0 --table tracker_hits --events 0:1000
    """
    from collidium.scoring.bench import loaders
    from collidium.scoring.bench.data_loading import time_slice

    read = loaders.find(loader) if loader else loaders.load
    place = _repository(source, hub, revision)
    part = _slice(place, *_selection(config, table, events), cache)
    with progress_bars(_BARS) as progress:
        times = time_slice(part, read, repeats=repeats, progress=progress)
    times.write(output)
    record = _record(part, times, loader or loaders.OWN, output)
    show_value(record, lambda _: _print(record, times))


def _repository(source: str, hub: str | None, revision: str | None) -> HubDataset:
    from collidium.errors import InvalidInput

    place = locate_source(source, hub, revision)
    if isinstance(place, Path):
        raise InvalidInput(
            f"{source} is a directory: name a repository, because reading from a hub is measured too"
        )
    return place


def _selection(
    config: str | None, table: str | None, events: EventRange | None
) -> tuple[str, str, EventRange]:
    """Return config, table and events, by default those of the server's task."""
    if config and table and events is not None:
        return config, table, events
    with client() as server:
        card = server.task(TASK)
    from collidium.contracts.task import EventRange

    if events is None:
        events = EventRange(card.eval_events.start, card.eval_events.stop)
    return config or card.dataset, table or card.inputs[0], events


def _slice(place: HubDataset, config: str, table: str, events: EventRange, cache: Path | None) -> Slice:
    from collidium import datasets
    from collidium.scoring.bench.data_loading import Slice

    with progress_bar("Downloading", sizes=True) as progress:
        fetched = datasets.download(place, config, [table], events, cache=cache, progress=progress)
    return Slice(place, fetched, config, table, range(events.start, events.stop))


def _record(part: Slice, times: Times, loader: str, output: Path) -> dict[str, Any]:
    places = {"local": times.local, "streaming": times.streaming}
    return {
        "task": TASK,
        "repository": part.place.repo,
        "commit": part.fetched.revision,
        "config": part.config,
        "table": part.table,
        "events": f"{part.events.start}:{part.events.stop}",
        "loader": loader,
        "digest": times.digest,
        **{
            name: {"events_per_second": one.events_per_second, "median_s": one.median, "seconds": one.seconds}
            for name, one in places.items()
        },
        "predictions": output,
    }


def _print(record: dict[str, Any], times: Times) -> None:
    shown = ("repository", "commit", "config", "table", "events", "loader", "digest")
    print_record({name: record[name] for name in shown})
    click.echo()
    print_table(
        ("from", "events per second", "median (s)", "fastest (s)", "slowest (s)"),
        (
            (place, one.events_per_second, one.median, min(one.seconds), max(one.seconds))
            for place, one in (("disk", times.local), ("hub", times.streaming))
        ),
    )
    note(f"Submit it: collidium submit {TASK} {record['predictions']}")
