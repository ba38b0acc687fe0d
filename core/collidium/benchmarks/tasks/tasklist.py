"""The backend's task list: which installed tasks take submissions.

A task is *installed* when a plugin brings it and *listed* when an operator put it here. The platform's own
tasks are listed the first time they are seen; an operator who removes one is not overruled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium.benchmarks.models import ListedTask
from collidium.database import transactional
from collidium.database.connections import RowByKey
from collidium.errors import NotFound
from collidium.plugins import DISTRIBUTION
from collidium.records import TaskStatus
from collidium.scoring.parts import Part

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.plugins import Provided


#: Longest name of a task, by the contract and by the tables.
MAX_NAME: Final = 64

_by_name: Final = RowByKey(ListedTask, "name")


async def list_tasks(tasks: Provided[Task]) -> list[TaskStatus]:
    """Every task that is installed or was ever listed, by name."""
    rows = {row.name: row for row in await ListedTask.all()}
    names = sorted(set(tasks.things) | {row.name for row in rows.values() if row.listed})
    return [_status(tasks, name, rows.get(name)) for name in names]


async def add_task(tasks: Provided[Task], name: str) -> TaskStatus:
    """Put an installed task on the list; raises NotFound naming those installed."""
    installed(tasks, name)
    return _status(tasks, name, await _set_listed(name, True))


async def remove_task(tasks: Provided[Task], name: str) -> TaskStatus:
    """Take a task off the list; its submissions, scores and credits stay. Raises NotFound."""
    row = await find_row(name)
    if row is None or not row.listed:
        raise NotFound(f"task {name!r} is not listed")
    return _status(tasks, name, await _set_listed(name, False))


async def list_new_built_ins(tasks: Provided[Task]) -> None:
    """List the tasks of the platform's own distribution that were never seen before."""
    own = [
        ListedTask(name=name)
        for name, distribution in tasks.distributions.items()
        if distribution == DISTRIBUTION
    ]
    await ListedTask.bulk_create(own, ignore_conflicts=True)


async def status_of(tasks: Provided[Task], name: str) -> TaskStatus:
    """Return the status of a task by name, also of one that is not there."""
    return _status(tasks, name, await find_row(name))


async def find_row(name: str) -> ListedTask | None:
    """The task's row, if it was ever listed. What cannot be a name never reaches the database."""
    if not (len(name) <= MAX_NAME and name.isascii() and name.isidentifier()):
        return None
    return await _by_name.get_or_none(name)


def unknown(name: str) -> NotFound:
    """Return the error for a task that does not exist."""
    return NotFound(f"there is no task {name[:100]!r}; GET /v1/benchmark/tasks lists those there are")


def installed(tasks: Provided[Task], name: str) -> Task:
    """The task that an installed plugin brings; raises NotFound naming those there are."""
    if name not in tasks.things:
        known = ", ".join(sorted(tasks.things)) or "none"
        raise NotFound(f"no installed plugin brings a task {name!r} (installed: {known})")
    return tasks.get(name)


@transactional
async def _set_listed(name: str, listed: bool) -> ListedTask:
    await ListedTask.bulk_create([ListedTask(name=name, listed=listed)], ignore_conflicts=True)
    row = await ListedTask.select_for_update().get(name=name)
    row.listed = listed
    await row.save(update_fields=["listed", "changed_at"])
    return row


def _status(tasks: Provided[Task], name: str, row: ListedTask | None) -> TaskStatus:
    task = tasks.things.get(name)
    listed = row is not None and row.listed
    truth = row.truth_version if row is not None else None
    part = Part.of(truth)
    reason = None
    if not listed:
        reason = f"not listed (collidium task add {name})"
    elif task is None:
        reason = "no installed plugin brings it"
    elif truth is None:
        reason = f"no truth yet (collidium truth import {name} --from ...)"
    return TaskStatus(
        name=name,
        title=task.card.title if task else name,
        installed=task is not None,
        listed=listed,
        distribution=tasks.distributions.get(name),
        scorer_version=task.version if task else None,
        truth_version=truth,
        phase=part.kind if part else None,
        public_percent=part.public_percent if part else None,
        reason=reason,
    )
