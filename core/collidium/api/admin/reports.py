"""``/admin/usage``, ``/admin/analytics``: what was ordered, by whom, and how it ended."""

from __future__ import annotations

from dataclasses import asdict

from quart import Blueprint, Response
from quart_schema import document_response, validate_querystring
from tortoise.timezone import now

from collidium import __version__, operations, outbox
from collidium.api.answers import answer, answer_list
from collidium.api.context import platform
from collidium.api.operator_schemas import DaysQuery, MonthQuery, UsageQuery
from collidium.benchmarks import tasklist
from collidium.records import ChannelUsage, DayUsage, Failures, Overview, SilentTask, Usage
from collidium.simulations import follower, reports, totals

blueprint = Blueprint("reports", __name__)


@blueprint.get("/overview")
@document_response(Overview)
async def overview() -> Response:
    """The platform at one look: frozen or not, the queue, today and this month, and what is wrong."""
    here = platform()
    freeze = await operations.current_freeze()
    standing = await reports.standing()
    silent = (
        task for task in await tasklist.list_tasks(here.tasks) if task.listed and task.reason is not None
    )
    return answer(
        Overview.of(
            standing,
            version=__version__,
            at=now(),
            run_mode=here.settings.run_mode,
            runner=here.runner.name,
            submissions_frozen=freeze.frozen,
            frozen_at=freeze.since,
            frozen_by=freeze.by,
            frozen_note=freeze.note,
            monthly_node_hours=here.settings.monthly_node_hours,
            followers=tuple(await follower.followers()),
            webhooks_pending=await outbox.backlog(),
            plugins_failed=tuple(here.plugins.failures),
            tasks_silent=tuple(SilentTask.of(task) for task in silent),
            **asdict(await totals.queue()),
            failed=standing.failures.failed,
            finished=standing.failures.finished,
            failure_rate=standing.failures.failure_rate,
        )
    )


@blueprint.get("/usage")
@validate_querystring(UsageQuery)
@document_response(Usage)
async def usage(query_args: UsageQuery) -> Response:
    """This month's node-hours and requests, and the accounts that used most."""
    return answer(await reports.usage(query_args.limit))


@blueprint.get("/analytics/channels")
@validate_querystring(MonthQuery)
@document_response(list[ChannelUsage])
async def channels(query_args: MonthQuery) -> Response:
    """Requests and node-hours of each channel in a month, most node-hours first."""
    found = await reports.channels(query_args.month)
    return answer_list(found)


@blueprint.get("/analytics/daily")
@validate_querystring(DaysQuery)
@document_response(list[DayUsage])
async def daily(query_args: DaysQuery) -> Response:
    """Requests and node-hours of each of the last days, oldest first."""
    return answer_list(await reports.daily(query_args.days))


@blueprint.get("/analytics/failures")
@validate_querystring(MonthQuery)
@document_response(Failures)
async def failures(query_args: MonthQuery) -> Response:
    """How many of the requests that ended in a month failed."""
    return answer(await reports.failures(query_args.month))
