"""Runs submitted models, one at a time per process, and submits their predictions.

Any number of processes do so; when one is killed, another continues its evaluation after the lease ends.
Models run in sandboxes (:mod:`collidium.inference`) on inputs that are never published. Their predictions are
scored and stored, and never shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import convert, structs

from collidium import accounts
from collidium.contracts.task import EventRange
from collidium.database.leased_loop import LeasedLoop, renewing
from collidium.database.leases import RENEWALS, LeaseLost
from collidium.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Undecodable,
)
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.files.stored import fetch
from collidium.inference import availability, timing
from collidium.inference.cores import CoreBusy, timing_core
from collidium.inference.manifest import interface_of, read_manifest
from collidium.inference.messages import Code, ModelRefused
from collidium.inference.running import Model, check, predict, tables_of
from collidium.inference.sandbox import CONFINED_BY, SandboxLimits, Unconfined, is_installed
from collidium.inference.timing import TimedBlock, Timing
from collidium.model_runs import Evaluation, model_files, model_queue, model_runners
from collidium.runtime import metrics
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import in_thread
from collidium.submissions import admissions, reruns, scores, submit
from collidium.submissions.admissions import Admission
from collidium.submissions.submit import Predictions
from collidium.truth import model_inputs, registry

if TYPE_CHECKING:
    from collidium.contracts.task import Tables, Task
    from collidium.datasets import Dataset
    from collidium.platform import Platform

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

#: Seconds between two polls of the queue, and of the progress of a model.
IDLE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 1.0
#: Delay of the next step after a failure of the platform, between timed blocks, and on a busy machine.
AGAIN: Final = timedelta(seconds=30)
APART: Final = timedelta(minutes=1)
BUSY: Final = timedelta(minutes=5)
#: Seconds between two examinations of a machine that cannot confine models.
EXAMINE_SECONDS: Final = 30.0
#: Number of random events that are timed, and maximum duration of a call of a model.
TIMED_EVENTS: Final = 100
CALL_SECONDS: Final = 600.0
#: Seed of the timed events, stored with each block as a JSON number. It is random, as the owner knows the
#: evaluation's id.
_SEED: Final = "seed"
_SEED_BITS: Final = 53
#: Metadata with the model's hash, so that predictions of two models are different files.
_MODEL: Final = "collidium.model"


# -- the loop ------------------------------------------------------------------------------------------


@asynccontextmanager
async def evaluating(platform: Platform) -> AsyncIterator[None]:
    """Run models in the background while the context lasts if this machine can, and record whether it can."""
    for task in platform.tasks.things:  # so that the first failure is an increase, for alerts
        metrics.MODELS_FAILED.labels(task, model_queue.PLATFORM_FAILED)
    evaluator = _Evaluator(platform)
    with suppress(Exception):  # recorded by the loop
        await evaluator.record()
    async with evaluator.running():
        yield


class _Evaluator(LeasedLoop[str]):
    """Runs one evaluation at a time."""

    def __init__(self, platform: Platform) -> None:
        super().__init__("evaluations", model_queue.RECEIVED, IDLE_SECONDS)
        self._platform = platform
        self._last_turns: dict[str, int] = {}
        #: Why this machine runs no models; empty: it does. None: not known yet.
        self._reason: str | None = None
        self._examined = self._recorded = -math.inf

    async def take(self) -> bool:
        if time.monotonic() - self._recorded >= model_runners.WRITE_SECONDS:
            await self.record()
        if self._under_way or self._reason != "":
            return False
        row = await model_queue.claim(self._last_turns, self._platform.settings.lease_seconds)
        if row is not None:
            reached("evaluate.claimed")
            self._last_turns[row.challenge] = max(self._last_turns.values(), default=0) + 1
            self.begin(self._evaluate(row), row.id)
        return False

    async def _evaluate(self, row: Evaluation) -> None:
        if not await evaluate(self._platform, row):
            self._reason, self._recorded = None, -math.inf

    async def record(self) -> None:
        """Record whether this machine runs models."""
        moment = time.monotonic()
        # The packages are looked for each time, as they may come or go; restrictions need a process.
        if not is_installed():
            self._set_reason(availability.NOT_INSTALLED)
        elif self._reason != "" and (self._reason is None or moment - self._examined >= EXAMINE_SECONDS):
            self._examined = moment
            unconfined = self._platform.settings.model_unconfined
            self._set_reason(await asyncio.to_thread(availability.why_not, unconfined=unconfined))
        await model_runners.record(self._reason or "")
        self._recorded = moment

    def _set_reason(self, reason: str) -> None:
        if reason and reason != self._reason:
            level = logging.INFO if reason == availability.NOT_INSTALLED else logging.ERROR
            logger.log(level, "this machine runs no models: %s", reason)
        self._reason = reason


async def evaluate(platform: Platform, row: Evaluation) -> bool:
    """Do the next step of a leased evaluation, and record the outcome; False if this machine cannot."""
    run = _Run(platform, row)
    try:
        await run.run()
    except LeaseLost:
        logger.info("evaluation %s was cancelled, or leased by another process", row.id)
    except asyncio.CancelledError:
        with suppress(Exception):
            await model_queue.give_back(row, tried=False)
        raise
    except ModelRefused as error:
        if error.code is Code.NOISY and row.attempts < model_queue.ATTEMPTS:
            await model_queue.give_back(row, BUSY, tried=True)
        else:
            await model_queue.mark_failed(row, error.code.value, error.reason)
    except CoreBusy:
        await model_queue.give_back(row, AGAIN, tried=False)
    except Unconfined as error:
        logger.error("evaluation %s waits: %s (PLATFORM_MODEL_UNCONFINED)", row.id, error)
        await model_queue.give_back(row, AGAIN, tried=False)
        return False
    except Exception as error:  # of the model, the task, the storage or the executor
        if (code := _code_of(error)) is not None:
            await model_queue.mark_failed(row, code)
            return True
        tried = not scores.is_transient(error)
        if tried and row.attempts >= model_queue.ATTEMPTS:
            logger.exception("evaluation %s: the platform failed %d times", row.id, row.attempts)
            await model_queue.mark_failed(row, model_queue.PLATFORM_FAILED)
            return True
        logger.warning("evaluation %s: %s; it will be retried", row.id, error, exc_info=tried)
        await model_queue.give_back(row, AGAIN, tried=tried)
    finally:
        run.stopped = True
    return True


def _code_of(error: Exception) -> str | None:
    """The code of a failed evaluation; None for failures of the platform, which are tried again."""
    if isinstance(error, InvalidInput) and not isinstance(error, Undecodable):
        return "not_scored"
    if isinstance(error, Forbidden):
        return "banned"
    return "closed" if isinstance(error, (Conflict, NotFound, TooManyRequests)) else None


class _Run:
    """One step of an evaluation in this process."""

    def __init__(self, platform: Platform, row: Evaluation) -> None:
        self._platform = platform
        self._row = row
        self._settings = platform.settings
        self._done = 0
        #: Ends the work of threads.
        self.stopped = False
        settings = platform.settings
        self._limits = SandboxLimits(
            settings.model_memory_bytes,
            call_seconds=min(CALL_SECONDS, settings.model_seconds),
            total_seconds=settings.model_seconds,
            on_wait=self._look,
            confined_by=() if settings.model_unconfined else CONFINED_BY,
        )

    def _look(self) -> None:
        """Raise LeaseLost in a thread that is no longer awaited: ends its sandbox and releases its locks."""
        if self.stopped:
            raise LeaseLost

    async def run(self) -> None:
        """Do the next step while renewing the lease; raises LeaseLost once it is lost."""
        seconds, looks, written = self._settings.lease_seconds, 0, 0

        async def renew() -> None:
            nonlocal looks, written
            looks += 1
            tenths = self._done * 10 // max(self._row.events, 1)
            if tenths != written or looks * LOOK_SECONDS >= seconds / RENEWALS:
                await model_queue.renew(self._row, seconds, self._done)
                written, looks = tenths, 0

        await renewing(self._step(), renew, min(LOOK_SECONDS, seconds / RENEWALS))

    async def _step(self) -> None:
        """Check the model, then time one block of events, or run it and submit its predictions."""
        admission = None
        if self._row.again:
            task = self._platform.tasks.find(self._row.task)
            truth = await registry.find(self._row.task, self._row.truth_version.whole)
            events = self._row.truth_version.events_of(truth.events)
        else:
            await accounts.require_not_banned(self._row.account_id)
            admission = await admissions.readmission(self._platform, self._row)
            task, truth = admission.task, admission.truth
            events = truth.version.events_of(truth.events)
        async with scratch_directory(self._settings.uploads) as scratch:
            file = scratch / "model.onnx"
            sha256 = self._row.sha256
            await fetch(self._platform.storage, model_files.model_key(sha256), file, sha256)
            content = await asyncio.to_thread(file.read_bytes)
            model = Model(content, read_manifest(self._row.manifest.encode(), task))
            if self._row.facts is None:
                # No event is read yet, so every problem of the file may be shown.
                facts = await self._in_thread(partial(check, model, task, limits=self._limits))
                reached("evaluate.checked")
                await model_queue.mark_running(self._row, structs.asdict(facts))
            elif self._row.running_at is None:
                await model_queue.mark_running(self._row, self._row.facts)
            async with model_inputs.opened(self._platform, truth.inputs) as dataset:
                if await self._is_timed(model, task, dataset, events):
                    path = scratch / "predictions.parquet"
                    await self._keep(
                        admission, task, path, await self._predict(model, task, dataset, events, path)
                    )

    # -- speed ---------------------------------------------------------------------------------------

    async def _is_timed(
        self, model: Model, task: Task, dataset: Dataset, events: Sequence[EventRange]
    ) -> bool:
        """Time a block of events if speed counts; False if another block is to follow minutes later."""
        timed = self._row.timed
        if "seconds" not in interface_of(task).measured.values() or len(timed) == timing.BLOCKS:
            return True
        # Each block has the same events, which are not published.
        seed = timed[0].get(_SEED) if timed else None
        seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        block = await self._in_thread(partial(self._time, model, task, dataset, events, seed))
        reached("evaluate.timed")
        await model_queue.mark_timed(self._row, [*timed, structs.asdict(block) | {_SEED: seed}])
        if len(timed) + 1 == timing.BLOCKS:
            return True
        await model_queue.give_back(self._row, APART, tried=False)
        return False

    def _time(
        self, model: Model, task: Task, dataset: Dataset, events: Sequence[EventRange], seed: int
    ) -> TimedBlock:
        chance = np.random.default_rng(seed)
        ids = np.concatenate([np.arange(part.start, part.stop) for part in events])
        chosen = pa.array(np.sort(chance.choice(ids, min(TIMED_EVENTS, len(ids)), replace=False)))
        read = [
            {name: table.filter(pc.is_in(table["event_id"], chosen)) for name, table in tables.items()}
            for part in events
            for _, tables in dataset.read(tables_of(model, task), part)
        ]
        tables: Tables = {name: pa.concat_tables(some[name] for some in read) for name in read[0]}
        # Without waiting: this process runs other models meanwhile.
        with timing_core(wait=False) as core:
            return timing.time_block(model, task, tables, limits=self._limits, core=core, details=False)

    # -- predictions ---------------------------------------------------------------------------------

    async def _predict(
        self, model: Model, task: Task, dataset: Dataset, events: Sequence[EventRange], path: Path
    ) -> Timing | None:
        """Write the model's predictions; returns its speed if it was measured."""
        blocks = convert(self._row.timed, list[TimedBlock])
        speed = timing.combine(blocks) if blocks else None
        try:
            async with asyncio.timeout(self._settings.model_seconds):
                await self._in_thread(partial(self._write, model, task, dataset, events, speed, path))
        except TimeoutError:
            raise ModelRefused(Code.TIME) from None
        reached("evaluate.predicted")
        return speed

    async def _keep(self, admission: Admission | None, task: Task, path: Path, speed: Timing | None) -> None:
        """Score the predictions, and keep them as a submission or as scores of an existing one."""
        platform, row = self._platform, self._row
        sha256 = await asyncio.to_thread(sha256_of, path)
        facts = row.facts
        card = {name: facts[name] for name in ("file_bytes", "n_params", "nodes", "opset")}
        card |= {
            "sha256": row.sha256,
            "manifest_sha256": hashlib.sha256(row.manifest.encode()).hexdigest(),
            "runtime": f"onnxruntime {version('onnxruntime')}",
        }
        if speed is not None:
            card |= {"seconds": speed.seconds, "seconds_error": speed.error, **speed.in_addition}
        if admission is None:
            result = await scores.score(platform, task, row.truth_version, path, sha256)
            result = replace(result, held_back=None)  # the model was not run on these events
            result = scores.with_measured_errors(task.card, card, result)
            await platform.storage.put(scores.storage_key(sha256), path)
            await reruns.keep(platform, row, result, sha256, card)
            return
        predictions = Predictions(path, sha256, (await asyncio.to_thread(path.stat)).st_size)
        await submit.submit_predicted(platform, admission, predictions, card)
        metrics.SUBMISSIONS.labels(row.task).inc()
        reached("evaluate.kept")

    def _write(
        self,
        model: Model,
        task: Task,
        dataset: Dataset,
        events: Sequence[EventRange],
        speed: Timing | None,
        path: Path,
    ) -> None:
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

    def _blocks(
        self, dataset: Dataset, names: tuple[str, ...], events: Sequence[EventRange]
    ) -> Iterator[Tables]:
        done = 0
        for part in events:
            for block, tables in dataset.read(names, part):
                self._look()
                yield tables
                self._done = done + block.stop - part.start
            done += len(part)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await in_thread(work, "evaluation")


def _with_seconds(table: pa.Table, task: Task, seconds: float) -> pa.Table:
    """Set the measured columns to the mean time of the timed events."""
    for column, what in interface_of(task).measured.items():
        if what == "seconds":
            index = table.schema.get_field_index(column)
            bounds = next(found.bounds for found in task.card.columns if found.name == column)
            values = np.full(len(table), np.clip(seconds, *bounds))
            table = table.set_column(index, column, pa.array(values))
    return table
