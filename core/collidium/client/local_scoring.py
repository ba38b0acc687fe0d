"""Score predictions on this machine as a server does, against truth that the caller has."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collidium import plugins
from collidium.client.uploads import predictions_file
from collidium.contracts.executor import Executor, Item, Limits, Result, StoredFile
from collidium.contracts.task import EventRange, Task
from collidium.datasets.access import event_range
from collidium.errors import CollidiumError, InvalidInput, ScoringFailed
from collidium.hub.sources import locate
from collidium.records import EvalEvents, LocalScores
from collidium.scoring import problems
from collidium.scoring.engine import Seeds, evaluate
from collidium.scoring.predictions import FooterRequest, inspect
from collidium.scoring.truth.importing import build_from
from collidium.scoring.uncertainty import PUBLIC_SEED

if TYPE_CHECKING:
    from collidium.client.uploads import Predictions
    from collidium.datasets.access import Events, Source
    from collidium.hub.sources import HubDataset

#: Called with the step (``download``, ``truth``, ``score``), the amount done and the total.
Progress = Callable[[str, int, int], None]

#: Each thread may hold a job in memory.
_MAX_THREADS: Final = 4
#: No limits for the caller's own files and tasks.
_UNLIMITED: Final = Limits(0, 0)


def score(
    task: str | Task,
    predictions: Predictions,
    *,
    truth_from: Source,
    config: str | None = None,
    events: Events = None,
    options: Mapping[str, str] | None = None,
    seed: str = PUBLIC_SEED,
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> LocalScores:
    """Score predictions on this machine, against truth that you have.

    Validation, scores and curves are the same as on a server: the same predictions and truth give identical
    numbers. Standard errors differ within their own accuracy, as a server's draws are secret.

    Parameters
    ----------
    task
        The name of an installed task, or a task.
    predictions
        The path of a parquet file, a table, a data frame, or arrays by column name.
    truth_from, config, endpoint, revision, token, cache
        The dataset with the truth, as for :func:`collidium.datasets.load`.
    events
        The events to score, for example ``"0:1000"``; by default from the first to the last event of the
        predictions. Missing predictions count as in a submission.
    options
        Values of the task's ``truth_options``, as a server's operator sets them.
    seed
        Any text; another one draws other events for the standard errors.
    progress
        Called with the step (``"download"``, ``"truth"`` or ``"score"``), the amount done, and the total.

    Returns
    -------
    LocalScores
        ``scores``, ``uncertainties``, ``curves`` and ``warnings``, and the versions of scorer and truth.

    Raises
    ------
    InvalidInput
        With all problems of the predictions in ``errors``, as on a server.
    NotFound
        If there is no such task or repository.
    UnusableDataset
        If the dataset lacks events or truth.
    CollidiumError
        If the task itself fails; and as :func:`collidium.datasets.load`.

    Examples
    --------
    >>> import collidium
    >>> from collidium import datasets
    >>> from collidium.demo import EVENTS_DIRECTORY
    >>> hits = datasets.load(EVENTS_DIRECTORY, tables="tracker_hits", events="0:2", rows="flat")
    >>> truth = {name: hits[name] for name in ("event_id", "hit_id")} | {"track_id": hits["particle_id"]}
    >>> made = collidium.score("tracking", truth, truth_from=EVENTS_DIRECTORY)
    >>> made.scores["trackml_weighted_efficiency"]
    1.0
    """
    found = plugins.load().tasks().find(task) if isinstance(task, str) else task
    place = locate(truth_from, endpoint=endpoint, revision=revision, token=token)
    with predictions_file(predictions) as path:
        wanted = event_range(events) or _predicted(found, path)
        scoring = _score(found, path.absolute(), place, wanted, config, options, seed, cache, progress)
        try:
            return _run(scoring)
        except ScoringFailed as error:
            raise CollidiumError(f"task {found.card.name} failed: {error.__cause__!r}") from error


def _predicted(task: Task, path: Path) -> EventRange:
    """Return the event range of a file. Raises InvalidInput with the problems of its footer."""
    footer, found = inspect(FooterRequest(path, task.card, max_rows=2**63))
    if footer is None:
        raise problems.refusal(found)
    first = [group.first for group in footer.groups if group.first is not None]
    last = [group.last for group in footer.groups if group.last is not None]
    if len(first) < len(footer.groups) or min(first) < 0:
        raise InvalidInput("the file does not record which events it has; name the events to score")
    return EventRange(min(first), max(last) + 1)


async def _score(
    task: Task,
    path: Path,
    place: Path | HubDataset,
    events: EventRange,
    config: str | None,
    options: Mapping[str, str] | None,
    seed: str,
    cache: Path | None,
    progress: Progress | None,
) -> LocalScores:
    executor = _Threads()
    fetching, preparing, scoring = (
        None if progress is None else partial(progress, step) for step in ("download", "truth", "score")
    )
    with tempfile.TemporaryDirectory(prefix="collidium-") as scratch:
        # The engine writes sorted copies next to the file, where the caller may not be able to write.
        file = Path(scratch) / "predictions.parquet"
        file.symlink_to(path)
        truth = await build_from(
            task,
            place,
            config=config,
            directory=Path(scratch),
            executor=executor,
            limits=_UNLIMITED,
            events=events,
            options=options,
            cache=cache,
            floors=False,
            fetching=fetching,
            progress=preparing,
        )
        made = await evaluate(
            task, truth, file, executor=executor, limits=_UNLIMITED, progress=scoring, seeds=Seeds(seed)
        )
    return LocalScores(
        task=task.card.name,
        scores=made.metrics,
        uncertainties=made.uncertainties,
        rows=made.rows,
        events=EvalEvents(truth.events.start, truth.events.stop),
        dataset=truth.dataset,
        dataset_revision=truth.revision,
        scorer_version=task.version,
        truth_version=truth.version,
        warnings=(*made.warnings, *made.missing),
        curves=made.curves,
    )


def _run(scoring: Coroutine[Any, Any, LocalScores]) -> LocalScores:
    """Run a coroutine, in a thread if this one has a running event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(scoring)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, scoring).result()


class _Threads(Executor):
    """Executor that runs calls in threads without limits, for files and tasks that the caller trusts."""

    name = "threads"

    async def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        limits: Limits,
        *,
        raises: tuple[type[Exception], ...] = (),
        fresh: bool = False,
        local: bool = False,
        alone: bool = False,
        files: Mapping[Path, StoredFile] | None = None,
    ) -> AsyncGenerator[Result, None]:
        pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS))
        try:
            results = pool.map(function, items)
            for _ in items:
                yield await asyncio.to_thread(next, results)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        """Do nothing: each call of :meth:`map` ends its own threads."""
