"""Models and events that commands of ``collidium model`` are given."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.options import (
    EXISTING_FILE,
    SourceType,
    cache_option,
    config_option,
    hub_options,
    locate_source,
)
from collidium.cli.output import note
from collidium.cli.progress import progress_bar
from collidium.cli.score import training_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collidium.contracts.task import EventRange, Task
    from collidium.datasets import Dataset
    from collidium.inference.manifest import Manifest
    from collidium.inference.running import Model
    from collidium.inference.timing import Timing

#: Events that are timed unless others are named.
TIMED: Final = 100

model_argument = click.argument("file", type=EXISTING_FILE, metavar="MODEL")
manifest_option = click.option(
    "--manifest",
    type=EXISTING_FILE,
    help="The manifest; default: manifest.toml next to MODEL.",
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name events; :func:`chosen` has those of none that are named."""
    source = click.option(
        "--from",
        "source",
        type=SourceType(file_okay=False),
        metavar="DIR|REPO",
        help="Dataset with the inputs: a directory, or a repository on the hub; default: the events to learn "
        "from that the server's card of the task names.",
    )
    for option in (hub_options, cache_option, config_option):
        command = option(command)
    return source(command)


def chosen(name: str, where: dict[str, Any]) -> dict[str, Any]:
    """The options that name events; where there are none, the events to learn from of a task or challenge.

    Raises InvalidInput where its card names none.
    """
    if where["source"] is not None:
        return where
    names = "source", "hub", "config", "revision"
    found = training_events(name, where["hub"], where["config"], where["revision"])
    return {**where, **dict(zip(names, found, strict=True))}


def timed(model: Model, task: Task, dataset: Dataset, events: EventRange, blocks: int) -> Timing:
    """Measure the speed of a model on events, with a bar for each block. Raises InvalidInput for too many."""
    from collidium.datasets.reading.dataset import MAX_BLOCK_EVENTS
    from collidium.errors import InvalidInput
    from collidium.inference.running import tables_of
    from collidium.inference.timing import combine, time_block

    if len(events) > MAX_BLOCK_EVENTS:
        raise InvalidInput(f"--events: {MAX_BLOCK_EVENTS} are timed at most, not {len(events)}")
    ((_, tables),) = dataset.read(tables_of(model, task), events, block_bytes=2**62)  # all in memory
    made = []
    for number in range(blocks):
        with progress_bar(f"Timing, block {number + 1} of {blocks} (passes)") as progress:
            made.append(time_block(model, task, tables, progress=progress))
    return combine(made)


@contextmanager
def submitted_model(model: str, manifest: Path | None) -> Iterator[tuple[Path, Path, str | None]]:
    """The files of a model to submit, and the repository of the hub that they are from.

    Raises UsageError for a file without a manifest, and as :func:`~collidium.hub.downloads.download_model`.
    """
    import asyncio

    from collidium.hub.client import Hub
    from collidium.hub.downloads import MANIFEST, MODEL, download_model
    from collidium.hub.sources import find_hub

    if (file := Path(model)).is_file():
        if manifest is None:
            raise click.UsageError("give --manifest with --model")
        yield file, manifest, None
        return
    hub = find_hub()
    with TemporaryDirectory() as name:
        directory = Path(name)
        with progress_bar("Downloading the model"):
            repo, commit = asyncio.run(download_model(Hub(hub.endpoint, hub.token or ""), model, directory))
        note(f"The model is that of {repo} at {commit[:12]}.")
        yield directory / MODEL, manifest or directory / MANIFEST, repo


def read_model(file: Path, manifest: Path | None) -> tuple[Model, Task]:
    """A model and its task; the manifest is next to the file unless it is named. Raises NotFound."""
    from collidium.errors import NotFound
    from collidium.inference.running import Model

    place = manifest or file.with_name("manifest.toml")
    if not place.exists():
        raise NotFound(f"there is no {place}; name it by --manifest")
    read, task = read_manifest(place)
    return Model(file.read_bytes(), read), task


def read_manifest(place: Path) -> tuple[Manifest, Task]:
    """A manifest and its task. Raises InvalidInput."""
    from collidium import plugins
    from collidium.inference import manifest

    content = place.read_bytes()
    task = plugins.load().tasks().find(manifest.task_of(content))
    return manifest.read_manifest(content, task), task


def events_of(
    model: Model,
    task: Task,
    events: EventRange | None,
    *,
    source: str,
    config: str | None,
    cache: Path | None,
    hub: str | None,
    revision: str | None,
    first: int | None = None,
) -> tuple[Dataset, EventRange]:
    """The dataset, downloaded where it is not here, and the events that are wanted or there.

    ``first``: only so many, unless some are wanted.
    """
    from collidium import datasets
    from collidium.contracts.task import EventRange
    from collidium.inference.running import tables_of

    place = locate_source(source, hub, revision)
    tables = tables_of(model, task)
    if isinstance(place, Path):
        directory = place
    else:
        with progress_bar("Downloading", sizes=True) as progress:
            fetched = datasets.download(place, config, tables, events, cache=cache, progress=progress)
        directory = fetched.directory
    dataset = datasets.Dataset(directory, config)
    if events is None:
        ids = dataset.table(tables[0]).event_ids
        events = EventRange(int(ids[0]), int(ids[: first or len(ids)][-1]) + 1)
    return dataset, events
