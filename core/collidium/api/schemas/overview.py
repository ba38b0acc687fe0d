"""Shape of what operators see at one look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Self

from pydantic import Field
from tortoise.timezone import now

from collidium import __version__
from collidium.api.schemas.base import Answer, Credits
from collidium.benchmarks.tasks.tasklist import TaskStatus
from collidium.operations import Freeze
from collidium.platform import Platform
from collidium.simulations.followers import FollowerView
from collidium.simulations.reports import Standing
from collidium.simulations.totals import Queue


class FollowerModel(Answer):
    """A process that follows requests, and when it last looked for work."""

    process: str
    looked_at: datetime


class SilentTask(Answer):
    """A listed task that takes no submissions, and why."""

    name: str
    reason: str


class OverviewModel(Answer):
    """The platform at one look; days and months of UTC; `failure_rate` in percent of this month's ends."""

    version: str
    at: datetime = Field(description="The server's clock.")
    run_mode: Literal["mock", "real"]
    runner: str
    submissions_frozen: bool
    frozen_at: datetime | None
    frozen_by: str | None
    frozen_note: str | None
    queued: int
    running: int
    oldest_queued_at: datetime | None
    month: str
    node_hours_today: Credits
    requests_today: int
    node_hours_month: Credits
    requests_month: int
    monthly_node_hours: Credits = Field(description="What all requests of a month may take.")
    failed: int
    finished: int
    failure_rate: float
    followers: list[FollowerModel] = Field(
        description="The latest first; one that was killed is named for a day. None: nobody follows requests."
    )
    webhooks_pending: int
    plugins_failed: list[str]
    tasks_silent: list[SilentTask]

    @classmethod
    def of(
        cls,
        platform: Platform,
        *,
        freeze: Freeze,
        queue: Queue,
        standing: Standing,
        followers: Sequence[FollowerView],
        webhooks_pending: int,
        tasks: Sequence[TaskStatus],
    ) -> Self:
        """The shape of what is known now, of which each part is told by its own domain."""
        return cls(
            version=__version__,
            at=now(),
            run_mode=platform.settings.run_mode,
            runner=platform.runner.name,
            submissions_frozen=freeze.frozen,
            frozen_at=freeze.since,
            frozen_by=freeze.by,
            frozen_note=freeze.note,
            queued=queue.queued,
            running=queue.running,
            oldest_queued_at=queue.oldest_queued_at,
            month=standing.month,
            node_hours_today=standing.node_hours_today,
            requests_today=standing.requests_today,
            node_hours_month=standing.node_hours_month,
            requests_month=standing.requests_month,
            monthly_node_hours=platform.settings.monthly_node_hours,
            failed=standing.failures.failed,
            finished=standing.failures.finished,
            failure_rate=standing.failures.failure_rate,
            followers=[FollowerModel.model_validate(process) for process in followers],
            webhooks_pending=webhooks_pending,
            plugins_failed=platform.plugins.failures,
            tasks_silent=[
                SilentTask(name=task.name, reason=task.reason)
                for task in tasks
                if task.listed and task.reason is not None
            ],
        )
