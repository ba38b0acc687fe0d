"""A simulation on this machine, from an order to a dataset in a directory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from collidium.datasets.cards import DatasetFile
from collidium.files import untrusted
from collidium.files.durable import is_full
from collidium.order import Order
from collidium.pipelines import processes
from collidium.pipelines.choice import AUTO, BUILT_IN, Choice, Get, Note, choose
from collidium.pipelines.les_houches import LesHouches
from collidium.pipelines.processes import Containers
from collidium.pipelines.production import (
    CannotSimulate,
    Production,
    StageFailed,
    check_channel,
    check_numbers,
)
from collidium.pipelines.stages import ReportProgress, Stages
from collidium.pipelines.work import Work, place
from collidium.runtime.logs import single_line


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a simulation that do not change its events."""

    #: A pipeline's name, or ``auto``.
    pipeline: str = AUTO
    #: ``docker``, ``podman``, ``none``, or ``auto``.
    runtime: str = AUTO
    #: None for :func:`~.stages.default_processes`.
    processes: int | None = None
    time_limit_seconds: float | None = None
    #: Whether to put the tables directly into the directory, without a card.
    flat: bool = False


class Simulated(Order, frozen=True, kw_only=True):
    """An order, and the dataset that was simulated for it on this machine."""

    directory: Path
    config: str  # pyright: ignore[reportIncompatibleMethodOverride]  # in the record and in JSON, too
    first_event: int
    pipeline: str
    pipeline_version: str
    #: ``docker``, ``podman`` or ``none``.
    runtime: str
    #: Paths of the shards below the directory, by table.
    tables: Mapping[str, Sequence[str]]
    size_bytes: int
    #: Duration of the last run.
    seconds: float
    #: Whether an earlier run had finished it.
    made_before: bool = False


def simulate(
    order: Order,
    directory: Path,
    options: RunOptions,
    *,
    get: Get,
    report: ReportProgress,
    note: Note,
    first_event: int = 0,
    lhe: Path | None = None,
) -> Simulated:
    """Simulate events into ``directory``, or continue an earlier run there. Blocks.

    Hard processes are read from the Les Houches file ``lhe``, if given.

    Raises UnknownOrder, CannotSimulate and StageFailed. If interrupted, the running stage is ended, and the
    next run continues after the finished ones.
    """
    began = time.monotonic()
    limit = options.time_limit_seconds
    deadline = None if limit is None else began + limit
    check_numbers(order, first_event)
    given = None
    if lhe is not None:
        try:
            given = LesHouches.read(lhe)
        except OSError as error:
            raise CannotSimulate(f"{lhe} cannot be read: {error.strerror}") from error
        given.check(order, first_event)
    work = Work(directory.expanduser().absolute())
    try:
        choice = _choose(order, first_event, options, work, get, note, given)
        production = Production(order, choice.pipeline, first_event, options.flat, given)
        with work.held():
            work.refuse_anything_else(production)
            if (finished := work.finished) is not None:
                return _found(finished, work)
            fetch(choice, work, note, deadline)
            work.begin(production)
            if given is not None:
                given.place(work.place)
            Stages(production, work, choice.runtime, options.processes, report, deadline).run()
            files = place(production, work)
            made = _simulated(production, choice, work, files, time.monotonic() - began)
            work.finish_all(
                structs.asdict(made) | {"directory": None, "files": [asdict(file) for file in files]}
            )
            return made
    except OSError as error:
        if is_full(error):
            raise CannotSimulate(
                f"the disk of {work.directory} is full: free some space, and the same command continues"
            ) from error
        raise


def _choose(
    order: Order,
    first_event: int,
    options: RunOptions,
    work: Work,
    get: Get,
    note: Note,
    lhe: LesHouches | None,
) -> Choice:
    started = work.started or {}
    ours = order.parameters | {"first_event": first_event, "flat": options.flat}
    same = all(started.get(name) == value for name, value in ours.items())
    name = started.get("pipeline") if same else None
    wanted = BUILT_IN if lhe is not None and options.pipeline == AUTO else options.pipeline
    if wanted != AUTO:
        check_channel(order, get(wanted), lhe)
    choice = choose(wanted, options.runtime, order, get, note, started=name)
    check_channel(order, choice.pipeline, lhe)
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
        **order.parameters,
        config=order.config,
        first_event=production.first_event,
        pipeline=choice.pipeline.name,
        pipeline_version=choice.pipeline.version,
        runtime=choice.runtime.name,
        tables=tables,
        size_bytes=sum(file.size_bytes for file in files),
        seconds=round(seconds, 3),
    )


def _found(finished: Mapping[str, Any], work: Work) -> Simulated:
    """Return the result of an earlier run. Raises CannotSimulate if its files have changed."""
    again = f"delete {work.directory} to simulate it again, or choose another --output"
    try:
        values = {name: value for name, value in finished.items() if name not in {"files", "directory"}}
        made = Simulated(**values | {"directory": work.directory, "made_before": True})
        files = [DatasetFile(**file) for file in finished["files"]]
        sizes = {work.directory / file.path: file.size_bytes for file in files}
    except (KeyError, TypeError) as error:
        raise CannotSimulate(f"the record of {work.directory} is invalid: {again}") from error
    for path, size in sizes.items():
        if not path.is_file() or path.stat().st_size != size:
            raise CannotSimulate(f"{path} was made here, and is gone or changed since: {again}")
    return made


_LAST_LINES = 6


def fetch(choice: Choice, work: Work, note: Note, deadline: float | None) -> None:
    """Let the engine pull or build missing images, with a log in ``logs/image.log``. Blocks.

    Raises StageFailed with the command to try manually, and CannotSimulate at the deadline.
    """
    if not isinstance(choice.runtime, Containers):
        return
    for image in choice.missing:
        words = choice.runtime.engine.fetching(image, choice.pipeline.containerfile)
        command = " ".join(words)
        note(f"Fetching the image {image}, once; this may take long: {command}")
        work.logs.mkdir(exist_ok=True)
        path = work.logs / "image.log"
        try:
            with untrusted.new(path) as file:
                code = processes.run(
                    words,
                    processes.Log(file, lambda line: False),
                    directory=work.logs,
                    environment=os.environ,
                    tick=lambda: None,
                    deadline=deadline,
                )
        except processes.TimeIsOver:
            raise CannotSimulate(f"the time limit was over while image {image} was fetched") from None
        if code:
            raise StageFailed(
                f"the image {image} cannot be fetched; try by hand: {command}. The log is {path}; its end",
                errors=[{"detail": single_line(line)} for line in processes.tail(path, _LAST_LINES)],
            )
