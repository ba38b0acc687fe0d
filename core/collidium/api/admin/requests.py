"""``/admin``: simulation requests of all accounts, usage reports, and an overview of the platform."""

from __future__ import annotations

from dataclasses import asdict

from quart import Blueprint, Response
from quart_schema import (
    document_response,
    operation_id,
    validate_querystring,
)
from tortoise.timezone import now

from collidium import __version__, accounts, operations, outbox, simulations
from collidium.api.answers import answer, answer_list
from collidium.api.authentication import OperatorCaller
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.idempotency import idempotent
from collidium.api.openapi import parquet_answer
from collidium.api.operator_schemas import DaysQuery, MonthQuery, UsageQuery
from collidium.api.simulations import AllRequestsQuery, answer_with_output, cancelling, listed
from collidium.challenges import tasklist
from collidium.errors import NotFound
from collidium.model_runs import model_runners
from collidium.records import (
    ChannelUsage,
    DayUsage,
    Failures,
    OperatedRequest,
    OutputFile,
    Overview,
    SilentTask,
    SimulationRequest,
    Usage,
)
from collidium.simulations import followers, reports
from collidium.submissions import waiting

blueprint = Blueprint("requests", __name__)


@blueprint.get("/requests")
@validate_querystring(AllRequestsQuery)
@document_response(list[SimulationRequest])
@raises(NotFound)
async def requests(query_args: AllRequestsQuery) -> Response:
    """Simulation requests of all accounts, newest first."""
    return await listed(query_args, await accounts.id_of(query_args.user), query_args.channel)


@blueprint.get("/requests/<request_id>")
@operation_id("request")
@document_response(OperatedRequest)
async def find(request_id: str) -> Response:
    """A simulation request of any account, with its job at the runner and its next step."""
    return answer(await simulations.find_as_operator(request_id))


@blueprint.post("/requests/<request_id>/cancel")
@document_response(SimulationRequest)
@document_response(SimulationRequest, 202)
@idempotent
async def cancel(caller: OperatorCaller, request_id: str) -> Response:
    """Cancel a simulation request of any account: 202 while its job is being stopped."""
    cancelled = await simulations.cancel_as_operator(platform(), request_id, **caller.audit)
    return cancelling(cancelled)


@blueprint.get("/requests/<request_id>/output")
@document_response(list[OutputFile])
async def output(request_id: str) -> Response:
    """The stored output files of a request; none until its job has completed."""
    return answer_list(await simulations.output_of(request_id, None))


@blueprint.get("/requests/<request_id>/output/<path:path>")
@parquet_answer
async def output_file(request_id: str, path: str) -> Response:
    """An output file of a request."""
    return await answer_with_output(request_id, path, None)


@blueprint.get("/overview")
@document_response(Overview)
async def overview() -> Response:
    """Summary of the platform: freeze, queue, usage of today and this month, and problems."""
    here = platform()
    freeze = await operations.current_freeze()
    standing = await reports.standing()
    models = await model_runners.waiting()
    files = await waiting.number()
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
            followers=tuple(await followers()),
            webhooks_pending=await outbox.backlog(),
            models_waiting=models.number,
            oldest_model_at=models.oldest_at,
            models_not_run=await model_runners.why_none() or None,
            files_waiting=files.waiting,
            files_not_retried=files.not_retried,
            plugins_failed=tuple(here.plugins.failures),
            tasks_silent=tuple(SilentTask.of(task) for task in silent),
            **asdict(await reports.queue()),
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
    """Requests and node-hours per channel in a month, most node-hours first."""
    found = await reports.channels(query_args.month)
    return answer_list(found)


@blueprint.get("/analytics/daily")
@validate_querystring(DaysQuery)
@document_response(list[DayUsage])
async def daily(query_args: DaysQuery) -> Response:
    """Requests and node-hours per day, oldest first."""
    return answer_list(await reports.daily(query_args.days))


@blueprint.get("/analytics/failures")
@validate_querystring(MonthQuery)
@document_response(Failures)
async def failures(query_args: MonthQuery) -> Response:
    """Failure rate of the requests that ended in a month."""
    return answer(await reports.failures(query_args.month))
