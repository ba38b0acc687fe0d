"""The runner ``sfapi`` and its settings: jobs on a batch system through the Superfacility API."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache, TLRUCache

from collidium.contracts.runner import (
    Job,
    JobProgress,
    JobState,
    JobStatus,
    RunnerError,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium.errors import ConfigurationError
from collidium.runtime.shared_calls import SharedCalls
from collidium.settings import Settings
from collidium_runners.batch.script import Allocation, BatchPart, parts, script
from collidium_runners.batch.states import ArrayTaskStatus, BatchRunner, Handle, job_status
from collidium_runners.command import PipelineCommand

if TYPE_CHECKING:
    from collidium_runners.sfapi.connection import ApiConnection
    from collidium_runners.sfapi.queue import Tasks

_BEGIN: Final = "-----BEGIN "
_OTHERS: Final = 0o077
_NOT_SET_UP: Final = "the platform is not set up for its batch system; its operators see why"

#: Seconds between two queries of progress, how long a caller waits for one, and the maximum number of jobs
#: whose progress is cached.
_PROGRESS_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 0.5
_WATCHED: Final = 1000


@dataclass(frozen=True, slots=True)
class Site:
    """The settings of a machine behind the API, validated when used."""

    settings: Settings

    @property
    def directory(self) -> PurePosixPath:
        """The directory for jobs on the machine."""
        return PurePosixPath(self.settings.sfapi_directory)

    def problems(self) -> list[str]:
        """Return what is missing or invalid."""
        found = []
        if find_spec("sfapi_client") is None:
            found.append("the runner sfapi needs sfapi_client: pip install 'collidium[sfapi]'")
        if not self.settings.sfapi_client_id:
            found.append("PLATFORM_SFAPI_CLIENT_ID is not set")
        if not self.directory.is_absolute():
            found.append("PLATFORM_SFAPI_DIRECTORY is not set to an absolute path")
        for check in (self.key, self._pipeline):
            try:
                check()
            except ConfigurationError as error:
                found.append(error.detail)
        return found

    def require(self) -> None:
        """Raise RunnerUnavailable if anything is missing or invalid: a retry works once it is fixed."""
        if problems := self.problems():
            raise RunnerUnavailable(_NOT_SET_UP) from ConfigurationError("; ".join(problems))

    def key(self) -> str:
        """Return the private key in PEM; text before it, such as the client's id, is allowed.

        Raises ConfigurationError without any content of the file.
        """
        key_file = self.settings.sfapi_key_file
        if key_file is None:
            raise ConfigurationError("PLATFORM_SFAPI_KEY_FILE is not set")
        try:
            if key_file.stat().st_mode & _OTHERS:
                raise ConfigurationError(f"PLATFORM_SFAPI_KEY_FILE: others may read it: chmod 600 {key_file}")
            text = key_file.read_text()
        except OSError as error:
            raise ConfigurationError(f"PLATFORM_SFAPI_KEY_FILE: {key_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            text = ""
        if "PRIVATE KEY" not in text.partition(_BEGIN)[2].partition("\n")[0]:
            raise ConfigurationError(f"PLATFORM_SFAPI_KEY_FILE: {key_file} has no private key in PEM")
        return text

    def split(self, job: Job) -> tuple[BatchPart, ...]:
        """Return the parts of a job."""
        return parts(job, self.settings.sfapi_events_per_part)

    def script(self, job: Job, job_parts: tuple[BatchPart, ...]) -> str:
        """Return the batch script. Raises RunnerRefused for a job that cannot be written as one."""
        allocation = Allocation(
            account=self.settings.sfapi_account,
            qos=self.settings.sfapi_qos,
            constraint=self.settings.sfapi_constraint,
        )
        try:
            return script(job, job_parts, self._pipeline(), self.directory, allocation)
        except ConfigurationError as error:
            raise RunnerUnavailable(_NOT_SET_UP) from error

    def _pipeline(self) -> PipelineCommand:
        return PipelineCommand.parse(self.settings.pipeline_command)


class SfapiRunner(BatchRunner):
    """Drives jobs through one connection, which is opened when first used."""

    name = "sfapi"
    #: A call for hundreds of jobs takes the API a while.
    watched_poll_seconds = 1

    def __init__(self, site: Site) -> None:
        super().__init__()
        self._site = site
        self._connecting = asyncio.Lock()
        self._connected: ApiConnection | None = None
        #: Progress of watched jobs: recent results, calls for them, and the last results.
        self._fresh = TLRUCache[str, "JobProgress | None", float](_WATCHED, self._fresh_until)
        self._asking = SharedCalls(self._fresh, finish=True)
        self._seen: LRUCache[str, JobProgress | None] = LRUCache(_WATCHED)

    def _fresh_until(self, key: str, progress: JobProgress | None, now: float) -> float:
        """Cache for longer with more watched jobs, so that there is one query a second for all."""
        return now + _PROGRESS_SECONDS * (1 + len(self._fresh))

    async def submit(self, job: Job) -> str:
        job_parts = self._site.split(job)
        script = self._site.script(job, job_parts)
        connection = await self._connection()
        async with self.submitting(job.request_id):
            jobs = await connection.queue.of_request(job.request_id)
            if not jobs:
                jobs = await self._submit(connection, script, job.request_id, len(job_parts))
            first, *others = sorted(jobs)
            # If it was submitted twice, by any process, keep the first job.
            for other in others:
                await _stop_if_active(connection, other, jobs[other])
        return _handle(first, jobs[first], job.request_id)

    async def _submit(
        self, connection: ApiConnection, script: str, request_id: str, parts: int
    ) -> dict[int, Tasks]:
        """Submit a job, and return all jobs of the request by id."""
        submitted: int | None = None
        trouble = RunnerUnavailable("the batch system does not know the job that it accepted")
        try:
            submitted = await connection.machine.submit(script)
        except RunnerUnavailable as error:
            # The job may have been submitted although the response was lost.
            trouble = error
        jobs = await connection.queue.of_request(request_id)
        if submitted is not None:
            jobs.setdefault(submitted, {})
        if not jobs:
            raise trouble
        # Add tasks that are not reported yet.
        return {job_id: _at_least(parts) | tasks for job_id, tasks in jobs.items()}

    async def find(self, request_id: str) -> str | None:
        try:
            jobs = await (await self._connection()).queue.of_request(request_id)
        except RunnerRefused:
            # The request id cannot name a job.
            return None
        return _handle(min(jobs), jobs[min(jobs)], request_id) if jobs else None

    async def statuses(self, handles: Collection[Handle]) -> dict[Handle, JobStatus | RunnerError]:
        queue = (await self._connection()).queue
        known = await queue.tasks({handle.job_id: handle.parts for handle in handles})
        return {handle: _status(handle, known.get(handle.job_id)) for handle in handles}

    async def progress(self, handle: str) -> JobProgress | None:
        """Return the last known progress if a query, which takes several calls, is slow."""
        with suppress(TimeoutError, RunnerUnavailable):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                self._seen[handle] = await self._asking.run(handle, partial(self._progress, handle))
        return self._seen.get(handle)

    async def _progress(self, handle: str) -> JobProgress | None:
        known = Handle.parse(handle)
        return await (await self._connection()).output(known).progress()

    async def stop(self, handle: Handle) -> None:
        connection = await self._connection()
        # All jobs of the request: a second one may have been submitted late.
        jobs = await connection.queue.of_request(handle.request_id)
        jobs.setdefault(handle.job_id, {})
        for job_id, tasks in jobs.items():
            await _stop_if_active(connection, job_id, tasks)

    async def finished_parts(self, handle: str) -> Sequence[bool]:
        return await (await self._connection()).output(Handle.parse(handle)).finished()

    async def fetch(self, handle: Handle, parts: range, directory: Path, max_bytes: int) -> list[Path]:
        # The folder of a part is complete, whatever the state of its job.
        output = (await self._connection()).output(handle)
        try:
            return await output.fetch(parts, directory, max_bytes)
        except OSError as error:
            raise RunnerUnavailable(f"the output cannot be written: {error.strerror}") from error

    async def close(self) -> None:
        await self._asking.close()
        connection, self._connected = self._connected, None
        if connection is not None:
            await connection.close()

    async def _connection(self) -> ApiConnection:
        """Return the connection. Raises RunnerUnavailable for incomplete settings."""
        async with self._connecting:
            if self._connected is None:
                self._connected = await asyncio.to_thread(self._connect)
            return self._connected

    def _connect(self) -> ApiConnection:
        self._site.require()
        # Imported here, as the library takes a quarter of a second and may not be installed.
        from collidium_runners.sfapi.connection import ApiConnection

        return ApiConnection(self._site)


def _handle(job_id: int, tasks: Tasks, request_id: str) -> str:
    return str(Handle(job_id, max(tasks) + 1, request_id))


def _at_least(parts: int) -> Tasks:
    return {index: ArrayTaskStatus(index, JobState.QUEUED) for index in range(parts)}


async def _stop_if_active(connection: ApiConnection, job_id: int, tasks: Tasks) -> None:
    if not tasks or any(not task.state.has_ended for task in tasks.values()):
        await connection.stop(job_id)


def _status(handle: Handle, known: Tasks | RunnerError | None) -> JobStatus | RunnerError:
    if isinstance(known, RunnerError):
        return known
    if known is None:
        return RunnerRefused(f"the batch system knows no job {handle.job_id}")
    return job_status(list(known.values()), handle.parts)
