"""A simulation on this machine, from an order to a dataset in a directory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from collidium.datasets.cards import DatasetFile
from collidium.files.durable import is_full
from collidium.order import DEFAULT_SEED, PRESETS, Order
from collidium.pipelines import images
from collidium.pipelines.choice import AUTO, Choice, Get, Note, choose
from collidium.pipelines.errors import CannotSimulate, UnknownOrder
from collidium.pipelines.placing import place
from collidium.pipelines.production import Production, check_channel, check_numbers
from collidium.pipelines.progress import Tell
from collidium.pipelines.stages import Stages
from collidium.pipelines.work import Work

#: Processes that a stage uses at the most unless it is told a number: each needs memory.
_MOST_PROCESSES: Final = 8


@dataclass(frozen=True, slots=True)
class Wishes:
    """How an order is to be simulated, beyond what decides over the events."""

    #: A pipeline's name, or ``auto``.
    pipeline: str = AUTO
    #: ``docker``, ``podman``, ``none``, or ``auto``.
    runtime: str = AUTO
    #: None: as many as there are processors, within reason.
    processes: int | None = None
    time_limit_seconds: float | None = None
    #: Whether the tables are to lie directly in the directory, without a card.
    flat: bool = False


@dataclass(frozen=True, slots=True)
class Simulated:
    """A dataset that was made on this machine."""

    directory: Path
    config: str
    channel: str
    events: int
    pileup: int
    seed: int
    first_event: int
    pipeline: str
    pipeline_version: str
    #: Where its stages ran: ``docker``, ``podman`` or ``none``.
    runtime: str
    #: Paths of the shards below the directory, by table.
    tables: Mapping[str, Sequence[str]]
    size_bytes: int
    #: How long the last run took.
    seconds: float
    #: Whether an earlier run had made it all.
    made_before: bool = False


def order_of(
    preset: str | None, channel: str | None, events: int | None, pileup: int | None, seed: int | None = None
) -> Order:
    """The order that a preset or the three knobs stand for.

    Raises UnknownOrder for both, for neither, and for a preset that is not there.
    """
    seed = DEFAULT_SEED if seed is None else seed
    if preset is None:
        if channel is None or events is None or pileup is None:
            raise UnknownOrder("give channel, events and pileup, or a preset")
        return Order(channel, events, pileup, seed)
    if (channel, events, pileup) != (None, None, None):
        raise UnknownOrder("a preset stands for channel, events and pileup: give one or the other")
    if preset not in PRESETS:
        raise UnknownOrder(f"there is no preset {preset[:100]!r}; there are: {', '.join(PRESETS)}")
    found = PRESETS[preset]
    return Order(found.channel, found.events, found.pileup, seed)


def simulate(
    order: Order,
    directory: Path,
    wishes: Wishes,
    *,
    get: Get,
    tell: Tell,
    note: Note,
    first_event: int = 0,
) -> Simulated:
    """Simulate events into ``directory``, or go on with what an earlier run began there. Blocks.

    Raises UnknownOrder, CannotSimulate and StageFailed; ends whatever runs when it is interrupted, and what
    is finished stays for the next run.
    """
    began = time.monotonic()
    limit = wishes.time_limit_seconds
    deadline = None if limit is None else began + limit
    check_numbers(order, first_event)
    work = Work(directory.expanduser().absolute())
    try:
        choice = _choose(order, first_event, wishes, work, get, note)
        production = Production(order, choice.pipeline, first_event, wishes.flat)
        with work.held():
            work.refuse_anything_else(production)
            if (finished := work.finished) is not None:
                return _found(finished, work)
            images.fetch(choice, work, note, deadline)
            work.begin(production)
            cores = wishes.processes or min(len(os.sched_getaffinity(0)), _MOST_PROCESSES)
            Stages(production, work, choice.runtime, cores, tell, deadline).run()
            files = place(production, work)
            made = _simulated(production, choice, work, files, time.monotonic() - began)
            work.finish_all(asdict(made) | {"directory": None, "files": [asdict(file) for file in files]})
            return made
    except OSError as error:
        if is_full(error):
            raise CannotSimulate(
                f"the disk of {work.directory} is full: make room, and the same command goes on"
            ) from error
        raise


def _choose(order: Order, first_event: int, wishes: Wishes, work: Work, get: Get, note: Note) -> Choice:
    begun = work.begun or {}
    ours = asdict(order) | {"first_event": first_event, "flat": wishes.flat}
    same = all(begun.get(name) == value for name, value in ours.items())
    name = begun.get("pipeline") if same else None
    if wishes.pipeline != AUTO:
        check_channel(order, get(wishes.pipeline))
    choice = choose(wishes.pipeline, wishes.runtime, order, get, note, begun=name)
    check_channel(order, choice.pipeline)
    return choice


def _simulated(
    production: Production, choice: Choice, work: Work, files: Sequence[DatasetFile], seconds: float
) -> Simulated:
    order = production.order
    prefix = f"{order.config}_"
    tables: dict[str, list[str]] = {}
    for file in files:
        folder = Path(file.path).parent.name
        table = folder.removeprefix(prefix) if folder else Path(file.path).stem.partition("-")[0]
        tables.setdefault(table, []).append(file.path)
    return Simulated(
        directory=work.directory,
        config=order.config,
        **asdict(order),
        first_event=production.first_event,
        pipeline=choice.pipeline.name,
        pipeline_version=choice.pipeline.version,
        runtime=choice.runtime.name,
        tables=tables,
        size_bytes=sum(file.size_bytes for file in files),
        seconds=round(seconds, 3),
    )


def _found(finished: Mapping[str, Any], work: Work) -> Simulated:
    """What an earlier run made. Raises CannotSimulate where it is no longer as it was."""
    again = f"delete {work.directory} to simulate it again, or choose another --output"
    try:
        told = {name: value for name, value in finished.items() if name not in {"files", "directory"}}
        made = Simulated(**told | {"directory": work.directory, "made_before": True})
        files = [DatasetFile(**file) for file in finished["files"]]
        sizes = {work.directory / file.path: file.size_bytes for file in files}
    except (KeyError, TypeError) as error:
        raise CannotSimulate(f"what was written down of {work.directory} makes no sense: {again}") from error
    for path, size in sizes.items():
        if not path.is_file() or path.stat().st_size != size:
            raise CannotSimulate(f"{path} was made here, and is gone or changed since: {again}")
    return made
