"""Prepares truth from a dataset block by block, in a scratch directory that is moved when complete.

Truth of servers and of local scoring is made by :func:`build_from`. Blocks have whole events, the same in
every table.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.executor import Executor, Limits
from collidium.contracts.task import NOTE, EventRange, Task, UnusableTruth
from collidium.datasets import Dataset, Fetched, HubDataset, fetch
from collidium.datasets.publishing.blinding import refuse_withheld
from collidium.errors import InvalidInput, UnusableDataset
from collidium.files.held import scratch_directory
from collidium.runtime.progress import Progress
from collidium.scoring.blocks import TruthBlock
from collidium.scoring.content import as_numpy, rows_below
from collidium.scoring.engine import evaluate
from collidium.scoring.truth.tables import TableWriter, TruthTable
from collidium.scoring.truth.versions import Truth, table_path

#: Maximum rows of a block, unless one event has more. Its tables nearly fit into a processor's cache.
BLOCK_ROWS: Final = 1024**2


#: The dataset of truth from files in no folder of a config, of which the name is unknown.
UNNAMED: Final = "unnamed"
#: Number of event ids that truth can have.
_MAX_EVENTS: Final = 2**32


#: The version of a truth with this hash of its content.
VersionOf = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a dataset: a repository or directory, and a revision."""

    dataset: str
    revision: str


async def build_from(
    task: Task,
    place: Path | HubDataset,
    *,
    config: str | None,
    directory: Path,
    executor: Executor,
    limits: Limits,
    events: EventRange | None = None,
    options: Mapping[str, str] | None = None,
    cache: Path | None = None,
    floors: bool = True,
    fetching: Progress | None = None,
    progress: Progress | None = None,
    version_of: VersionOf | None = None,
) -> Truth:
    """Prepare truth as :func:`build` does, from a directory or a repository.

    Downloads go to ``cache``; ``fetching`` is called with the bytes so far, and of all. Raises InvalidInput
    for unknown options, and as :func:`~collidium.datasets.fetch` and :func:`build`.
    """
    _refuse_unknown(task, options or {})
    events = events or task.card.eval_events
    if isinstance(place, Path):
        fetched = Fetched(place, "local")
    else:
        tables = sorted({*task.card.truth_sources, *(task.card.inputs if floors else ())})
        fetched = await fetch(place, tables, cache, config=config, events=events, progress=fetching)
    dataset = await asyncio.to_thread(Dataset, fetched.directory, config)
    configs = dataset.configs()
    only = next(iter(configs)) if len(configs) == 1 else None
    return await build(
        task,
        dataset,
        origin=Origin(config or only or UNNAMED, fetched.revision),
        directory=directory,
        executor=executor,
        limits=limits,
        events=events,
        options=options,
        floors=floors,
        progress=progress,
        version_of=version_of,
    )


def _refuse_unknown(task: Task, options: Mapping[str, str]) -> None:
    known = task.truth_options
    wrong = [f"{name}={value}" for name, value in options.items() if value not in known.get(name, ())]
    if wrong:
        listed = ", ".join(f"{name}={'|'.join(values)}" for name, values in known.items()) or "none"
        raise InvalidInput(f"truth of {task.card.name} has no option {', '.join(wrong)}; it has {listed}")


async def build(
    task: Task,
    source: Dataset,
    *,
    origin: Origin,
    directory: Path,
    executor: Executor,
    limits: Limits,
    events: EventRange | None = None,
    options: Mapping[str, str] | None = None,
    floors: bool = True,
    block_rows: int = BLOCK_ROWS,
    progress: Progress | None = None,
    version_of: VersionOf | None = None,
) -> Truth:
    """Prepare the truth of ``events`` (default: the card's) in ``directory/<task>/<version>``.

    The same input gives the same version; an existing one is kept. ``version_of`` gives the version of a hash
    of the content, which is the version by default. ``options`` are those of the task. With ``floors`` the
    task's first baseline, if any, is scored like a submission; the floors are its metrics.
    ``progress`` is called from another thread.

    Raises UnusableDataset if events are missing or the dataset lacks what the task needs, and as
    :func:`~collidium.scoring.engine.evaluate`. Nothing is left after an error.
    """
    events = events or task.card.eval_events
    if events.stop > _MAX_EVENTS:
        raise UnusableDataset(f"events that are scored have ids below {_MAX_EVENTS} (2^32), not {events}")
    async with scratch_directory(directory / task.card.name) as scratch:
        builder = _Builder(task, source, origin, events, options or {}, floors, block_rows, progress)
        truth, baseline = await asyncio.to_thread(builder.write, scratch)
        if baseline is not None:
            made = await evaluate(task, truth, baseline, executor=executor, limits=limits)
            truth = replace(truth, floors=made.metrics)
            baseline.unlink()
        if version_of is not None:
            truth = replace(truth, version=await version_of(truth.content))
        return await asyncio.to_thread(truth.move_to, directory / task.card.name / truth.version)


@dataclass(frozen=True, slots=True)
class _Builder:
    task: Task
    source: Dataset
    origin: Origin
    events: EventRange
    options: Mapping[str, str]
    floors: bool
    block_rows: int
    progress: Progress | None

    def write(self, directory: Path) -> tuple[Truth, Path | None]:
        """Write tables, and predictions of the baseline if there are any, into ``directory``."""
        card = self.task.card
        notes: dict[str, str] = {}
        reconstruct = next(iter(self.task.baselines().values()), None) if self.floors else None
        names = tuple(dict.fromkeys([*card.truth_sources, *(card.inputs if self.floors else ())]))
        with ExitStack() as stack:
            writer = stack.enter_context(TruthWriter(directory, card.rows_of, self.events, self.block_rows))
            baseline = stack.enter_context(_Baseline(directory / "baseline.predictions"))
            for block, tables in self.source.read(names, self.events):
                for name in card.truth_sources:
                    refuse_withheld(name, tables[name])
                sources = {name: tables[name] for name in card.truth_sources}
                with _unusable(card.name):
                    prepared = self.task.prepare_with(sources, self.options)
                    writer.add(block, prepared)
                notes |= _notes(sources) | _notes(prepared)
                if reconstruct is not None:
                    with _unusable(card.name):
                        baseline.add(reconstruct({name: tables[name] for name in card.inputs}))
                if self.progress:
                    self.progress(block.stop - self.events.start, len(self.events))
            described = writer.finish()
        content = self._content(writer.content_hashes())
        truth = Truth(
            directory=directory,
            task=card.name,
            version=content,
            content=content,
            dataset=self.origin.dataset,
            revision=self.origin.revision,
            events=self.events,
            tables=described,
            blocks=tuple(writer.blocks),
            scorer_version=self.task.version,
            created_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            floors={},
            notes=notes,
        )
        return truth, baseline.path if baseline.rows else None

    def _content(self, tables: Mapping[str, str]) -> str:
        content = {
            "task": self.task.card.name,
            "scorer_version": self.task.version,
            "dataset": self.origin.dataset,
            "revision": self.origin.revision,
            "events": str(self.events),
            "tables": tables,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def _unusable(task: str) -> Iterator[None]:
    """Raise UnusableDataset for tables that a task cannot use, such as those without a column it needs."""
    try:
        yield
    except UnusableTruth as error:
        raise UnusableDataset(str(error)) from error
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        detail = error.args[0] if error.args else type(error).__name__
        raise UnusableDataset(f"task {task} cannot use these tables: {detail}") from error


def _notes(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """The notes of a task on how it prepared tables."""
    metadata = [(table.schema.metadata or {}).items() for table in tables.values()]
    texts = [(k.decode(errors="replace"), v.decode(errors="replace")) for items in metadata for k, v in items]
    return {key.removeprefix(NOTE): value for key, value in texts if key.startswith(NOTE)}


class _Baseline:
    """Writes predictions of a task's first baseline; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Baseline:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, predictions: pa.Table) -> None:
        """Add the predictions of the next events."""
        if not predictions.num_rows:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, predictions.schema)
        self._writer.write_table(predictions)
        self.rows += predictions.num_rows


class TruthWriter:
    """Writes prepared truth, which comes in any portions, as blocks; a context manager."""

    def __init__(self, directory: Path, rows_of: str, events: EventRange, block_rows: int) -> None:
        self._directory = directory
        self._rows_of = rows_of
        self._block_rows = block_rows
        self._start, self._stop = events.start, events.stop
        self._waiting: dict[str, list[pa.Table]] = {}
        self._files: dict[str, TableWriter] = {}
        self.blocks: list[TruthBlock] = []

    def __enter__(self) -> TruthWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, events: EventRange, tables: Mapping[str, pa.Table]) -> None:
        """Add the truth of the next events; raises UnusableTruth if it breaks the contract of tasks."""
        if self._rows_of not in tables:
            raise UnusableTruth(f"the task prepares no table {self._rows_of!r}, which its card names rows_of")
        for name, table in tables.items():
            _check(name, table, events)
            if name not in self._files:
                self._files[name] = TableWriter(table_path(self._directory, name), table.schema)
            self._waiting.setdefault(name, []).append(table.cast(self._files[name].schema))
        if sum(table.num_rows for table in self._waiting[self._rows_of]) > self._block_rows:
            self._flush(complete_below=events.stop, everything=False)

    def finish(self) -> dict[str, TruthTable]:
        """Write the remaining rows and describe the files."""
        self._flush(self._stop, everything=True)
        return {name: file.finish() for name, file in sorted(self._files.items())}

    def content_hashes(self) -> dict[str, str]:
        """A hash of each table's values, independent of blocks and encoding."""
        return {name: file.content_hash() for name, file in sorted(self._files.items())}

    def _flush(self, complete_below: int, *, everything: bool) -> None:
        """Write all full blocks; with ``everything`` also the last, which may not be full."""
        tables = {name: pa.concat_tables(pieces).combine_chunks() for name, pieces in self._waiting.items()}
        events = {name: as_numpy(table.column("event_id")) for name, table in tables.items()}
        edges = _edges(events[self._rows_of], self._start, complete_below, self._block_rows)
        if not everything:
            edges = edges[:-1]
        for stop in edges[1:]:
            block = EventRange(self._start, stop)
            cuts = {name: [rows_below(events[name], edge) for edge in (self._start, stop)] for name in tables}
            for name, (first, last) in cuts.items():
                self._files[name].write(tables[name].slice(first, last - first))
            first, last = cuts[self._rows_of]
            self.blocks.append(TruthBlock(len(self.blocks), block, last - first))
            self._start = stop
        self._waiting = {
            name: [table.slice(rows_below(events[name], self._start))] for name, table in tables.items()
        }


def _edges(events: npt.NDArray[Any], start: int, stop: int, block_rows: int) -> list[int]:
    """The first events of blocks, and ``stop``: each block takes as many events as fit."""
    rows = np.bincount(np.asarray(events, np.int64) - start, minlength=stop - start)
    done = np.concatenate([[0], np.cumsum(rows)])
    edges = [0]
    while edges[-1] < stop - start:
        fit = int(np.searchsorted(done, done[edges[-1]] + block_rows, side="right")) - 1
        edges.append(max(fit, edges[-1] + 1))
    return [start + edge for edge in edges]


def _check(name: str, table: pa.Table, events: EventRange) -> None:
    if "event_id" not in table.column_names or table.schema.field("event_id").type != pa.uint32():
        raise UnusableTruth(f"truth table {name!r} needs a column event_id of type uint32")
    nulls = [column for column in table.column_names if table.column(column).null_count]
    if nulls:
        raise UnusableTruth(f"truth table {name!r} has nulls in {', '.join(nulls)}")
    ids = as_numpy(table.column("event_id"))
    if len(ids) and (np.any(ids[1:] < ids[:-1]) or ids[0] < events.start or ids[-1] >= events.stop):
        raise UnusableTruth(f"truth table {name!r} is not sorted by event, or has other events than {events}")
