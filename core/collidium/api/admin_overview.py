"""``/admin/overview``: the platform at one look, cheap enough to be asked again and again."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, security_scheme, tag
from tortoise.timezone import now

from collidium import __version__, operations, outbox
from collidium.api.answers import answer
from collidium.api.authentication import only_operators
from collidium.api.context import platform
from collidium.api.schemas import FollowerModel, OverviewModel, SilentTask
from collidium.benchmarks import tasklist
from collidium.simulations import followers, queue, reports

blueprint = Blueprint("admin_overview", __name__, url_prefix="/admin")
blueprint.before_request(only_operators)


@blueprint.get("/overview")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@document_response(OverviewModel)
async def overview() -> Response:
    """The platform at one look: frozen or not, the queue, today and this month, and what is wrong."""
    here = platform()
    freeze = await operations.current_freeze()
    waiting = await queue.queue()
    standing = await reports.standing()
    return answer(
        OverviewModel(
            version=__version__,
            at=now(),
            run_mode=here.settings.run_mode,
            runner=here.runner.name,
            submissions_frozen=freeze.frozen,
            frozen_at=freeze.since,
            frozen_by=freeze.by,
            frozen_note=freeze.note,
            queued=waiting.queued,
            running=waiting.running,
            oldest_queued_at=waiting.oldest_queued_at,
            month=standing.month,
            node_hours_today=standing.node_hours_today,
            requests_today=standing.requests_today,
            node_hours_month=standing.node_hours_month,
            requests_month=standing.requests_month,
            monthly_node_hours=here.settings.monthly_node_hours,
            failed=standing.failures.failed,
            finished=standing.failures.finished,
            failure_rate=standing.failures.failure_rate,
            followers=[FollowerModel.model_validate(process) for process in await followers.followers()],
            webhooks_pending=await outbox.backlog(),
            plugins_failed=here.plugins.failures,
            tasks_silent=[
                SilentTask(name=task.name, reason=task.reason)
                for task in await tasklist.list_tasks(here)
                if task.listed and task.reason is not None
            ],
        )
    )
