"""Runs submitted models, one at a time, and has what they predict scored as predictions are.

Any number of processes do so; one that is killed leaves its evaluation to others when its lease ends. Models
run in sandboxes (:mod:`collidium.inference`) on inputs that are never published, and what they predict goes
into the storage and to scoring alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import convert, structs

from collidium import accounts
from collidium.benchmarks.submissions import admissions, evaluations, submitting
from collidium.benchmarks.submissions.admissions import Admission
from collidium.benchmarks.submissions.evaluations import Evaluation, LeaseLost
from collidium.benchmarks.submissions.submitting import Predictions
from collidium.benchmarks.truth import model_inputs
from collidium.contracts.task import EventRange
from collidium.database.leased_loop import LeasedLoop
from collidium.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    ScoringFailed,
    TooManyRequests,
)
from collidium.files.durable import sha256_of
from collidium.files.held import locked, scratch_directory
from collidium.inference import timing
from collidium.inference.codes import Code, ModelRefused
from collidium.inference.manifest import interface_of, read_manifest
from collidium.inference.running import Model, check, predict, tables_of
from collidium.inference.sandbox import Limits, Unconfined
from collidium.inference.timing import TimedBlock, Timing
from collidium.runtime import metrics
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import in_thread

if TYPE_CHECKING:
    from collidium.contracts.task import Tables, Task
    from collidium.datasets import Dataset
    from collidium.platform import Platform

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

#: Seconds between two looks into the queue without a notification, and at what a model has done.
IDLE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 1.0
#: A lease is renewed so often before it would run out.
RENEWALS: Final = 3
#: How long until the next step: when the platform failed, between blocks of time, when the machine was busy.
AGAIN: Final = timedelta(seconds=30)
APART: Final = timedelta(minutes=1)
BUSY: Final = timedelta(minutes=5)
#: Events that are timed, at random, and the longest call of a model.
TIMED_EVENTS: Final = 100
CALL_SECONDS: Final = 600.0
#: What models cannot reach, unless a setting allows it: hidden events would leave by it.
CONFINED_BY: Final = ("calls", "files", "network")
#: Kept with each block, as a number of JSON: which events are timed.
_SEED: Final = "seed"
_SEED_BITS: Final = 53
#: Names the model in the predictions' file, so that those of two models are two files.
_MODEL: Final = "collidium.model"


# -- the loop ------------------------------------------------------------------------------------------


@asynccontextmanager
async def evaluating(platform: Platform) -> AsyncIterator[None]:
    """Run models in the background while the context lasts, where onnxruntime is installed."""
    if not (find_spec("onnxruntime") and find_spec("onnx")):
        yield
        return
    loop = _Evaluator(platform)
    running = asyncio.create_task(loop.run(), name="evaluations")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await loop.stop()


class _Evaluator(LeasedLoop[str]):
    """Works on one evaluation at a time."""

    def __init__(self, platform: Platform) -> None:
        super().__init__("evaluations", evaluations.RECEIVED, IDLE_SECONDS)
        self._platform = platform
        self._last_turns: dict[str, int] = {}

    async def take(self) -> bool:
        if self._under_way:
            return False
        row = await evaluations.claim(self._last_turns, self._platform.settings.lease_seconds)
        if row is not None:
            reached("evaluate.claimed")
            self._last_turns[row.challenge] = max(self._last_turns.values(), default=0) + 1
            self.begin(evaluate(self._platform, row), row.id)
        return False


async def evaluate(platform: Platform, row: Evaluation) -> None:
    """Do the next step of an evaluation that is leased, and write down what became of it."""
    run = _Run(platform, row)
    try:
        await run.renewed(run.step())
    except LeaseLost:
        logger.info("evaluation %s was cancelled, or is another process's", row.id)
    except asyncio.CancelledError:
        with suppress(Exception):
            await evaluations.give_back(row, tried=False)
        raise
    except ModelRefused as error:
        if error.code is Code.NOISY and row.attempts < evaluations.ATTEMPTS:
            await evaluations.give_back(row, BUSY, tried=True)
        else:
            await evaluations.mark_failed(row, error.code.value, error.detail)
    except Unconfined as error:
        logger.error("evaluation %s waits: %s (PLATFORM_MODEL_UNCONFINED)", row.id, error)
        await evaluations.give_back(row, BUSY, tried=False)
    except Exception as error:
        if (code := _code_of(error)) is not None:
            await evaluations.mark_failed(row, code)
            return
        logger.warning("evaluation %s: %s; it is tried again", row.id, error, exc_info=True)
        await evaluations.give_back(row, AGAIN, tried=True)
    finally:
        run.stopped = True


def _code_of(error: Exception) -> str | None:
    """Why an evaluation fails; None where the platform does, and it is tried again."""
    if isinstance(error, (InvalidInput, ScoringFailed)):
        return "not_scored"
    if isinstance(error, Forbidden):
        return "banned"
    return "closed" if isinstance(error, (Conflict, NotFound, TooManyRequests)) else None


class _Run:
    """One process's work on an evaluation."""

    def __init__(self, platform: Platform, row: Evaluation) -> None:
        self._platform = platform
        self._row = row
        self._settings = platform.settings
        self._done = 0
        #: Ends what a thread does for it.
        self.stopped = False
        settings = platform.settings
        self._limits = Limits(
            settings.model_memory_bytes,
            call_seconds=min(CALL_SECONDS, settings.model_seconds),
            total_seconds=settings.model_seconds,
            look=self._look,
            confined_by=() if settings.model_unconfined else CONFINED_BY,
        )

    def _look(self) -> None:
        """Raise LeaseLost where the caller no longer waits for a thread: its sandbox ends, and its locks."""
        if self.stopped:
            raise LeaseLost

    async def renewed(self, work: Any) -> None:
        """Await work and keep its lease; raises LeaseLost as soon as that is known."""
        task, looks, seconds = asyncio.create_task(work), 0, self._settings.lease_seconds
        written = 0
        try:
            while not (await asyncio.wait({task}, timeout=min(LOOK_SECONDS, seconds / RENEWALS)))[0]:
                looks += 1
                tenths = self._done * 10 // max(self._row.events, 1)
                if tenths != written or looks * LOOK_SECONDS >= seconds / RENEWALS:
                    await evaluations.renew(self._row, seconds, self._done)
                    written, looks = tenths, 0
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def step(self) -> None:
        """Check the model, or time it once, or run it and have it scored."""
        await accounts.require_not_banned(self._row.account_id)
        admission = await admissions.readmission(self._platform, self._row)
        task = admission.task
        async with scratch_directory(self._settings.uploads) as scratch:
            file = scratch / "model.onnx"
            await self._platform.storage.get(evaluations.model_key(self._row.sha256), file)
            content = await asyncio.to_thread(file.read_bytes)
            model = Model(content, read_manifest(self._row.manifest.encode(), task))
            if self._row.facts is None:
                # No event is read: all that is wrong with the file may be shown.
                facts = await self._in_thread(partial(check, model, task, limits=self._limits))
                reached("evaluate.checked")
                await evaluations.mark_running(self._row, structs.asdict(facts))
            elif self._row.running_at is None:
                await evaluations.mark_running(self._row, self._row.facts)
            async with model_inputs.opened(self._platform, admission.truth.inputs) as dataset:
                if await self._is_timed(model, task, dataset, admission.truth.events):
                    await self._predict(admission, model, dataset, scratch / "predictions.parquet")

    # -- speed ---------------------------------------------------------------------------------------

    async def _is_timed(self, model: Model, task: Task, dataset: Dataset, events: EventRange) -> bool:
        """Time a block of a model whose speed counts; False where another has to be, minutes later."""
        timed = self._row.timed
        if "seconds" not in interface_of(task).measured.values() or len(timed) == timing.BLOCKS:
            return True
        # The same events in each block; which ones is not shown.
        seed = timed[0].get(_SEED) if timed else None
        seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        block = await self._in_thread(partial(self._time, model, task, dataset, events, seed))
        reached("evaluate.timed")
        await evaluations.mark_timed(self._row, [*timed, structs.asdict(block) | {_SEED: seed}])
        if len(timed) + 1 == timing.BLOCKS:
            return True
        await evaluations.give_back(self._row, APART, tried=False)
        return False

    def _time(self, model: Model, task: Task, dataset: Dataset, events: EventRange, seed: int) -> TimedBlock:
        chance = np.random.default_rng(seed)
        size = min(TIMED_EVENTS, len(events))
        chosen = pa.array(events.start + np.sort(chance.choice(len(events), size, replace=False)))
        parts = [
            {name: table.filter(pc.is_in(table["event_id"], chosen)) for name, table in tables.items()}
            for _, tables in dataset.read(tables_of(model, task), events)
        ]
        tables: Tables = {name: pa.concat_tables(part[name] for part in parts) for name in parts[0]}
        with locked(self._settings.data_dir / "timing.lock"):  # one at a time on a machine
            return timing.time_block(model, task, tables, limits=self._limits, details=False)

    # -- predictions ---------------------------------------------------------------------------------

    async def _predict(self, admission: Admission, model: Model, dataset: Dataset, path: Path) -> None:
        blocks = convert(self._row.timed, list[TimedBlock])
        speed = timing.combine(blocks) if blocks else None
        write = partial(self._write, model, admission, dataset, speed, path)
        try:
            async with asyncio.timeout(self._settings.model_seconds):
                await self._in_thread(write)
        except TimeoutError:
            raise ModelRefused(Code.TIME) from None
        reached("evaluate.predicted")
        sha256 = await asyncio.to_thread(sha256_of, path)
        predictions = Predictions(path, sha256, (await asyncio.to_thread(path.stat)).st_size)
        facts = self._row.facts
        card = {name: facts[name] for name in ("file_bytes", "n_params", "nodes", "opset")}
        card |= {
            "sha256": self._row.sha256,
            "manifest_sha256": hashlib.sha256(self._row.manifest.encode()).hexdigest(),
            "runtime": f"onnxruntime {version('onnxruntime')}",
        }
        if speed is not None:
            card |= {"seconds": speed.seconds, "seconds_error": speed.error}
        await submitting.submit_predicted(self._platform, admission, predictions, card)
        metrics.SUBMISSIONS.labels(self._row.task).inc()
        reached("evaluate.kept")

    def _write(
        self, model: Model, admission: Admission, dataset: Dataset, speed: Timing | None, path: Path
    ) -> None:
        task, events = admission.task, admission.truth.events
        writer: pq.ParquetWriter | None = None
        reading = self._blocks(dataset, tables_of(model, task), events)
        try:
            for table in predict(model, task, reading, limits=self._limits, details=False):
                if speed is not None:
                    table = _with_seconds(table, task, speed.seconds)
                table = table.replace_schema_metadata({_MODEL: self._row.sha256})
                writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()

    def _blocks(self, dataset: Dataset, names: tuple[str, ...], events: EventRange) -> Iterator[Tables]:
        for block, tables in dataset.read(names, events):
            self._look()
            yield tables
            self._done = block.stop - events.start

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await in_thread(work, "evaluation")


def _with_seconds(table: pa.Table, task: Task, seconds: float) -> pa.Table:
    """Each event took as long as the events that were timed did on average."""
    for column, what in interface_of(task).measured.items():
        if what == "seconds":
            index = table.schema.get_field_index(column)
            bounds = next(found.bounds for found in task.card.columns if found.name == column)
            values = np.full(len(table), np.clip(seconds, *bounds))
            table = table.set_column(index, column, pa.array(values))
    return table
