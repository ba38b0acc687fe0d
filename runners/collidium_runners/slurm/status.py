"""The status of a job, from Slurm's report and the records in its folder."""

from __future__ import annotations

from collections.abc import Collection

from collidium.contracts.runner import JobState, JobStatus, RunnerRefused
from collidium_runners.batch.states import TaskStatus, job_status
from collidium_runners.slurm.backend import ReportedTask
from collidium_runners.slurm.folder import FolderState

#: A controller forgets a task some minutes after its end (MinJobAge), and what was killed with its node could
#: leave nothing.
_LOST = "Slurm does not know it any more, and it left no result"


def reports_all_parts(parts: int, seen: Collection[ReportedTask]) -> bool:
    """Whether Slurm reports the task of every part."""
    return len({task.index for task in seen} - {None}) >= parts


def is_lost(parts: int, seen: Collection[ReportedTask], left: FolderState) -> bool:
    """Whether neither the queue nor the folder has the state of some part."""
    known = {task.index for task in seen}
    return None not in known and len(known | left.records.keys()) < parts


def combined_status(
    parts: int, seen: Collection[ReportedTask], left: FolderState, parts_per_node: int
) -> JobStatus | RunnerRefused:
    """The job's status; RunnerRefused for an unknown job.

    The first source with a state of a part decides: Slurm's report of this task; the task's own record;
    Slurm's report of all remaining tasks. A part without a state has failed, or was cancelled if that was
    requested.
    """
    if not seen and not left.known:
        return RunnerRefused("Slurm does not know this job, and its folder is gone")
    singly = {task.index: task for task in seen if task.index is not None}
    others = next((task for task in seen if task.index is None), None)

    def status(index: int) -> TaskStatus:
        if index in singly:
            return singly[index].status(index, parts_per_node)
        if index in left.records:
            return left.records[index].status(index, parts_per_node, cancelled=left.cancelled)
        if others is not None:
            return others.status(index, parts_per_node)
        if left.cancelled:
            return TaskStatus(index, JobState.CANCELLED, 0, "cancelled")
        return TaskStatus(index, JobState.FAILED, None, _LOST)

    return job_status([status(index) for index in range(parts)], parts)
