"""The runner ``slurm``: array jobs on a Slurm cluster that shares a file system with the server."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from collidium.contracts.runner import (
    Job,
    JobProgress,
    JobState,
    JobStatus,
    RunnerError,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium.settings import Settings
from collidium_runners import outputs
from collidium_runners.batch.script import Allocation, minutes, parts, script
from collidium_runners.batch.states import ArrayTaskStatus, BatchRunner, Handle, job_status
from collidium_runners.command import PipelineCommand, job_name, job_progress
from collidium_runners.slurm.backend import ReportedTask, SlurmBackend, SlurmSubmission
from collidium_runners.slurm.folder import FolderState, RequestFolder

#: The tasks that Slurm reports of each job.
ReportedTasks = dict[Handle, list[ReportedTask]]
#: The folder of each job, or why it cannot be used.
FolderStates = Mapping[Handle, FolderState | RunnerUnavailable]


class SlurmRunner(BatchRunner):
    """Drives jobs through a :class:`~collidium_runners.slurm.backend.SlurmBackend`."""

    name = "slurm"
    #: At once, as one query covers all due jobs.
    watched_poll_seconds = 0

    def __init__(self, backend: SlurmBackend, settings: Settings) -> None:
        """Raise ConfigurationError for an invalid pipeline command."""
        super().__init__()
        self._backend = backend
        self._settings = settings
        self._command = PipelineCommand.parse(settings.pipeline_command)
        self.is_shared = settings.slurm_directory is not None
        #: The same path on the server and on compute nodes.
        self._directory = (settings.slurm_directory or settings.data_dir / "slurm").absolute()
        self._allocation = Allocation(
            partition=settings.slurm_partition,
            account=settings.slurm_account,
            qos=settings.slurm_qos,
            constraint=settings.slurm_constraint,
            cpus=settings.slurm_cpus_per_part,
            parts_per_node=settings.slurm_parts_per_node,
        )

    async def submit(self, job: Job) -> str:
        name = job_name(job.request_id)
        folder = self._folder(job.request_id)
        async with self.submitting(job.request_id):
            split = parts(job, self._settings.slurm_events_per_part, self._settings.slurm_maximum_parts)
            count, is_first = await asyncio.to_thread(folder.claim_parts, len(split))
            job_id = None if is_first else await self._known(folder, name)
            if job_id is None:
                job_id = await self._submit(job, count, folder)
        return str(Handle(job_id, count, job.request_id))

    async def _submit(self, job: Job, count: int, folder: RequestFolder) -> int:
        # The number of parts of the first submission: the settings may have changed since.
        split = parts(job, 1, count)
        submission = SlurmSubmission(
            job_name(job.request_id),
            script(job, split, self._command, self._directory, self._allocation),
            count,
            minutes(job, split, self._allocation.parts_per_node),
            self._allocation,
            folder.path,
        )
        try:
            queued = await self._backend.submit(submission)
        except RunnerUnavailable:
            # The job may have been submitted although the response was lost.
            found = await self._named(submission.name)
            if found is None:
                raise
            queued = found
        job_id = await asyncio.to_thread(folder.claim_job, queued)
        if job_id != queued:
            # Another process was faster.
            await self._stop(queued, submission.name)
        return job_id

    async def _named(self, name: str) -> int | None:
        try:
            return min(await self._backend.find_jobs(name), default=None)
        except RunnerUnavailable:
            return None

    async def _known(self, folder: RequestFolder, name: str) -> int | None:
        """Return the id of a job that any process has submitted for the request."""
        job_id = await asyncio.to_thread(folder.job)
        if job_id is not None:
            return job_id
        named = await self._backend.find_jobs(name)
        return await asyncio.to_thread(folder.claim_job, min(named)) if named else None

    async def find(self, request_id: str) -> str | None:
        try:
            name = job_name(request_id)
        except RunnerRefused:
            return None
        folder = self._folder(request_id)
        count = await asyncio.to_thread(folder.parts)
        if count is None:
            return None
        job_id = await self._known(folder, name)
        return None if job_id is None else str(Handle(job_id, count, request_id))

    async def statuses(self, handles: Collection[Handle]) -> dict[Handle, JobStatus | RunnerError]:
        # In threads, as there may be thousands of jobs with files.
        tasks = await self._backend.tasks({handle.job_id for handle in handles})
        seen, left = await asyncio.to_thread(self._look, handles, tasks)
        lost = [
            handle
            for handle, state in left.items()
            if isinstance(state, FolderState) and is_lost(handle.parts, seen[handle], state)
        ]
        if lost:
            accounted = _by_handle(lost, await self._backend.accounted({handle.job_id for handle in lost}))
            # The queue, which is more recent, comes last and decides.
            seen |= {handle: accounted[handle] + seen[handle] for handle in lost}
        return await asyncio.to_thread(self._combine, seen, left)

    def _look(
        self, handles: Collection[Handle], tasks: Collection[ReportedTask]
    ) -> tuple[ReportedTasks, FolderStates]:
        """Return Slurm's report of each job, and the folders of jobs whose report lacks or fails parts."""
        seen = _by_handle(handles, tasks)
        return seen, {
            handle: self._state_of(handle)
            for handle in handles
            if not reports_all_parts(handle.parts, seen[handle]) or has_failed(seen[handle])
        }

    def _state_of(self, handle: Handle) -> FolderState | RunnerUnavailable:
        """Return the state of a folder, or why it cannot be used, which concerns this job alone."""
        try:
            return self._folder(handle.request_id).state_after(handle.job_id, handle.parts)
        except RunnerUnavailable as error:
            return error

    def _combine(self, seen: ReportedTasks, left: FolderStates) -> dict[Handle, JobStatus | RunnerError]:
        per_node = self._allocation.parts_per_node
        nothing = FolderState(known=True)
        found: dict[Handle, JobStatus | RunnerError] = {}
        for handle, tasks in seen.items():
            state = left.get(handle, nothing)
            if isinstance(state, FolderState):
                found[handle] = combined_status(handle.parts, tasks, state, per_node)
            else:
                found[handle] = state
        return found

    async def progress(self, handle: str) -> JobProgress | None:
        known = Handle.parse(handle)
        folder = self._folder(known.request_id)
        return job_progress(await asyncio.to_thread(folder.progress, known.parts), known.parts)

    async def stop(self, handle: Handle) -> None:
        await asyncio.to_thread(self._folder(handle.request_id).mark_cancelled)
        await self._stop(handle.job_id, job_name(handle.request_id))

    async def _stop(self, job_id: int, name: str) -> None:
        if not await self._is_active(job_id, name):
            return
        try:
            await self._backend.cancel(job_id)
        except RunnerUnavailable:
            # Slurm reports an error if it has ended in the meantime.
            if await self._is_active(job_id, name):
                raise

    async def _is_active(self, job_id: int, name: str) -> bool:
        """Whether the job is waiting or running; False for another job that has reused its id."""
        tasks = await self._backend.tasks([job_id])
        return any(task.job_name == name and not task.state.has_ended for task in tasks)

    async def finished_parts(self, handle: str) -> Sequence[bool]:
        known = Handle.parse(handle)
        return await asyncio.to_thread(self._folder(known.request_id).finished, known.parts)

    async def fetch(self, handle: Handle, parts: range, directory: Path, max_bytes: int) -> list[Path]:
        # The folder of a part is complete, whatever the state of its job.
        source = self._folder(handle.request_id).path
        try:
            return await asyncio.to_thread(outputs.gather, source, parts, directory, max_bytes)
        except OSError as error:
            raise RunnerUnavailable(f"the output cannot be read: {error.strerror}") from error

    async def close(self) -> None:
        await self._backend.close()

    def _folder(self, request_id: str) -> RequestFolder:
        # A directory that an operator sets must exist; the default one is created.
        return RequestFolder(self._directory / request_id, self._settings.slurm_directory is not None)


def _by_handle(handles: Collection[Handle], tasks: Collection[ReportedTask]) -> ReportedTasks:
    """Return the tasks of each job, by id and name, as Slurm reuses ids."""
    found: dict[tuple[int, str], list[ReportedTask]] = {}
    for task in tasks:
        found.setdefault((task.job_id, task.job_name), []).append(task)
    return {handle: found.get((handle.job_id, job_name(handle.request_id)), []) for handle in handles}


#: For a task that left no record, as its node failed, and that Slurm forgot some minutes later (MinJobAge).
_LOST = "Slurm does not know it any more, and it left no result"


def reports_all_parts(parts: int, seen: Collection[ReportedTask]) -> bool:
    """Whether Slurm reports the task of every part."""
    return len({task.index for task in seen} - {None}) >= parts


def has_failed(seen: Collection[ReportedTask]) -> bool:
    """Whether Slurm reports that a task has failed."""
    return any(task.state == JobState.FAILED for task in seen)


def is_lost(parts: int, seen: Collection[ReportedTask], left: FolderState) -> bool:
    """Whether the state of any part is neither in the queue nor in the folder."""
    known = {task.index for task in seen}
    return None not in known and len(known | left.records.keys()) < parts


def combined_status(
    parts: int, seen: Collection[ReportedTask], left: FolderState, parts_per_node: int
) -> JobStatus | RunnerRefused:
    """Return the status of a job, or RunnerRefused for an unknown job.

    The state of a part is taken from the first of: a record of success with complete output if Slurm reports
    a failure, which may be of a run before the task was requeued; Slurm's report of its task; the record of
    the task; Slurm's report of all remaining tasks. A part without a state has failed, or is cancelled if
    that was requested.
    """
    if not seen and not left.known:
        return RunnerRefused("Slurm does not know this job, and its folder is gone")
    singly = {task.index: task for task in seen if task.index is not None}
    others = next((task for task in seen if task.index is None), None)

    def status(index: int) -> ArrayTaskStatus:
        if index in singly and not (singly[index].state == JobState.FAILED and left.has_succeeded(index)):
            return singly[index].status(index, parts_per_node)
        if index in left.records:
            return left.records[index].status(index, parts_per_node, cancelled=left.cancelled)
        if others is not None:
            return others.status(index, parts_per_node)
        if left.cancelled:
            return ArrayTaskStatus(index, JobState.CANCELLED, 0, "cancelled")
        return ArrayTaskStatus(index, JobState.FAILED, None, _LOST)

    return job_status([status(index) for index in range(parts)], parts)
