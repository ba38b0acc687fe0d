"""Reads the models and events that commands of ``collidium model`` are given."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import hub_client, training_data
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collidium.contracts.task import EventRange, Task
    from collidium.datasets import Dataset
    from collidium.inference.manifest import Manifest
    from collidium.inference.running import Model
    from collidium.inference.timing import Timing

#: Number of events that are timed by default.
TIMED: Final = 100

model_argument = click.argument("file", type=EXISTING_FILE, metavar="MODEL")
manifest_option = click.option(
    "--manifest",
    type=EXISTING_FILE,
    help="The manifest; default: manifest.toml next to MODEL.",
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a dataset; :func:`source_or_training_data` fills in their defaults."""
    source = click.option(
        "--from",
        "source",
        type=SourceType(file_okay=False),
        metavar="DIR|REPO",
        help="Dataset with the inputs: a directory, or a repository on the hub; default: the training data "
        "of the task on the server, or without those the events that come with the package.",
    )
    for option in (hub_options, cache_option, config_option):
        command = option(command)
    return source(command)


def source_or_training_data(name: str, task: Task, where: dict[str, Any]) -> dict[str, Any]:
    """Return the options of :func:`source_options`, by default for the training data of a task or challenge.

    Without those, the events that come with the package. Raises InvalidInput if there are neither.
    """
    from collidium.datasets import sample
    from collidium.errors import InvalidInput

    if where["source"] is not None:
        return where
    found = training_data(name, where["hub"], where["config"], where["revision"])
    if found is not None:
        return {**where, **dict(zip(("source", "hub", "config", "revision"), found, strict=True))}
    directory = sample.packaged([*task.card.inputs, *task.card.truth_sources])
    if directory is None:
        raise InvalidInput(f"{name} has no training data: name a dataset with --from")
    note(f"{name} has no training data: these are the few events that come with the package.")
    return {**where, "source": str(directory), "hub": None, "config": None, "revision": None}


def measure_speed(model: Model, task: Task, dataset: Dataset, events: EventRange, blocks: int) -> Timing:
    """Measure the speed of a model, with a bar per block. Raises InvalidInput for too many events."""
    from collidium.datasets.reading.dataset import MAX_BLOCK_EVENTS
    from collidium.errors import InvalidInput
    from collidium.inference.running import tables_of
    from collidium.inference.timing import combine, time_block

    if len(events) > MAX_BLOCK_EVENTS:
        raise InvalidInput(f"--events: at most {MAX_BLOCK_EVENTS} can be timed, not {len(events)}")
    ((_, tables),) = dataset.read(tables_of(model, task), events, block_bytes=2**62)  # all in memory
    timings = []
    for number in range(blocks):
        with progress_bar(f"Timing, block {number + 1} of {blocks} (passes)") as progress:
            timings.append(time_block(model, task, tables, progress=progress))
    return combine(timings)


@contextmanager
def submitted_model(model: str, manifest: Path | None) -> Iterator[tuple[Path, Path, str | None]]:
    """Yield the model and manifest to submit, and the hub repository they are from, if any.

    Raises UsageError for a file without a manifest, and what
    :func:`~collidium.hub.downloads.download_model` raises.
    """
    import asyncio

    from collidium.hub.downloads import MANIFEST, MODEL, download_model

    if (file := Path(model)).is_file():
        if manifest is None:
            raise click.UsageError("give --manifest with --model")
        yield file, manifest, None
        return
    with TemporaryDirectory() as name:
        directory = Path(name)
        with progress_bar("Downloading the model"):
            repo, commit = asyncio.run(download_model(hub_client(), model, directory))
        note(f"Submitting the model of {repo} at {commit[:12]}.")
        yield directory / MODEL, manifest or directory / MANIFEST, repo


def read_model(file: Path, manifest: Path | None) -> tuple[Model, Task]:
    """Read a model and find its task. The manifest is by default next to the file. Raises NotFound."""
    from collidium.errors import NotFound
    from collidium.inference.running import Model

    path = manifest or file.with_name("manifest.toml")
    if not path.exists():
        raise NotFound(f"{path} does not exist: name the manifest with --manifest")
    parsed, task = read_manifest(path)
    return Model(file.read_bytes(), parsed), task


def read_manifest(path: Path) -> tuple[Manifest, Task]:
    """Read a manifest and find its task. Raises InvalidInput."""
    from collidium import plugins
    from collidium.inference import manifest

    content = path.read_bytes()
    task = plugins.load().tasks().find(manifest.task_of(content))
    return manifest.read_manifest(content, task), task


def open_dataset(
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
    """Return the dataset, downloaded if needed, and the events to read.

    Those are ``events``, or else all of the dataset, or its ``first`` ones.
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
