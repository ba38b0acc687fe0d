"""``collidium bench``: what is measured on this machine, to be submitted."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.calling import client
from collidium.cli.datasets.download import check_events
from collidium.cli.datasets.source import hub_options, place_of, source_argument
from collidium.cli.output import json_option, note, print_json, print_record, print_table
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.datasets import HubDataset
    from collidium.scoring.bench.data_loading import Slice, Times

#: The task that asks for it.
TASK: Final = "data_loading"
_PLACES: Final = {"disk": "Reading from disk", "hub": "Reading from the hub"}


@click.group()
def bench() -> None:
    """Measure on this machine what a task asks for."""


@bench.command("data-loading")
@source_argument()
@click.option("--config", metavar="NAME", help="Dataset config; default: the task's.")
@click.option("--table", metavar="NAME", help="Table that is read; default: the task's.")
@click.option("--events", metavar="START:STOP", help="Events that are read; default: the task's.")
@click.option(
    "--loader", metavar="MODULE:FUNCTION", help="What reads them; default: collidium.datasets.load."
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Readings from each place; their median counts.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    default=Path(f"{TASK}.parquet"),
    show_default=True,
    help="Where the predictions go.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of downloads; default: collidium/datasets in XDG_CACHE_HOME or ~/.cache.",
)
@hub_options
@json_option
def data_loading(
    source: str,
    config: str | None,
    table: str | None,
    events: str | None,
    loader: str | None,
    repeats: int,
    output: Path,
    cache: Path | None,
    hub: str | None,
    revision: str | None,
    as_json: bool,
) -> None:
    """Measure how fast events of SOURCE, a repository, are read from disk and from its hub.

    Downloads the shards first. Then the loader reads the events of the task data_loading from the downloaded
    files, as often as --repeats says, and again over HTTP. Files may be in the memory of the system. Every
    reading is compared with the dataset, value by value, while the clock stands still. Writes the one row of
    predictions for `collidium submit data_loading`.

    \b
    collidium bench data-loading alice/odd-ttbar
    collidium bench data-loading alice/odd-ttbar --loader my_loaders:with_polars
    collidium bench data-loading alice/odd-ttbar --config ttbar_pu0 --table tracker_hits --events 0:1000
    """
    check_events(events)
    from collidium.scoring.bench import loaders
    from collidium.scoring.bench.data_loading import time_slice

    read = loaders.find(loader) if loader else loaders.load
    place = _repository(source, hub, revision)
    part = _slice(place, *_asked(config, table, events), cache)
    with _Bars() as bars:
        times = time_slice(part, read, repeats=repeats, progress=bars.tell)
    times.write(output)
    record = _record(part, times, loader or loaders.OWN, output)
    if as_json:
        print_json(record)
    else:
        _show(record, times)


def _repository(source: str, hub: str | None, revision: str | None) -> HubDataset:
    from collidium.errors import InvalidInput

    place = place_of(source, hub, revision)
    if isinstance(place, Path):
        raise InvalidInput(
            f"{source}: is a directory, and reading from a hub is measured, too: name a repository"
        )
    return place


def _asked(config: str | None, table: str | None, events: str | None) -> tuple[str, str, str]:
    """Config, table and events: those that were given, else those of the server's task."""
    if config and table and events:
        return config, table, events
    with client() as server:
        card = server.task(TASK)
    asked = f"{card.eval_events.start}:{card.eval_events.stop}"
    return config or card.dataset, table or card.inputs[0], events or asked


def _slice(place: HubDataset, config: str, table: str, events: str, cache: Path | None) -> Slice:
    from collidium import datasets
    from collidium.contracts.task import EventRange
    from collidium.scoring.bench.data_loading import Slice

    with progress_bar("Downloading", sizes=True) as progress:
        fetched = datasets.download(place, config, [table], events, cache=cache, progress=progress)
    wanted = EventRange.parse(events)
    return Slice(place, fetched, config, table, range(wanted.start, wanted.stop))


class _Bars(ExitStack):
    """A bar for each place that is read from, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._place = ""
        self._show: Any = None

    def tell(self, place: str, done: int, total: int) -> None:
        if place != self._place:
            self.close()
            self._place = place
            self._show = self.enter_context(progress_bar(_PLACES[place]))
        if self._show:
            self._show(done, total)


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


def _show(record: dict[str, Any], times: Times) -> None:
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
    note(f"Send it: collidium submit {TASK} {record['predictions']}")
