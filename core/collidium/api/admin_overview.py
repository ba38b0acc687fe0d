"""``/admin/overview``: the platform at one look, cheap enough to be asked again and again."""

from __future__ import annotations

from dataclasses import asdict

from quart import Blueprint, Response
from quart_schema import document_response, security_scheme, tag
from tortoise.timezone import now

from collidium import __version__, operations, outbox
from collidium.api.answers import answer
from collidium.api.authentication import only_operators
from collidium.api.context import platform
from collidium.benchmarks import tasklist
from collidium.records import Overview, SilentTask
from collidium.simulations import follower, reports, totals

blueprint = Blueprint("admin_overview", __name__, url_prefix="/admin")
blueprint.before_request(only_operators)


@blueprint.get("/overview")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
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
