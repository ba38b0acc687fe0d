"""What became of a job, from what Slurm tells of its tasks and what they left behind."""

from __future__ import annotations

from collections.abc import Collection

from collidium.contracts.runner import JobState, JobStatus, RunnerRefused
from collidium_runners.batch.states import TaskStatus, job_status
from collidium_runners.slurm.door import SeenTask
from collidium_runners.slurm.folder import Left

#: A controller forgets a task some minutes after its end (MinJobAge), and what was killed with its node could
#: leave nothing.
_LOST = "Slurm does not know it any more, and it left no result"


def seen_singly(parts: int, seen: Collection[SeenTask]) -> bool:
    """Whether Slurm tells every part's task, so that nothing else need be asked."""
    return len({task.index for task in seen} - {None}) >= parts


def is_lost(parts: int, seen: Collection[SeenTask], left: Left) -> bool:
    """Whether neither the queue nor what the job left tells what became of some part."""
    known = {task.index for task in seen}
    return None not in known and len(known | left.records.keys()) < parts


def told(
    parts: int, seen: Collection[SeenTask], left: Left, parts_per_node: int
) -> JobStatus | RunnerRefused:
    """The job's status; RunnerRefused when nobody ever heard of the job.

    For each part the first that knows of it decides: Slurm, of this task; the task's own record; Slurm, of
    the tasks that it does not tell one by one. A part that nobody knows of has failed, or was cancelled if
    that was wanted.
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
