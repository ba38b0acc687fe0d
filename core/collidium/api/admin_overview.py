"""``/admin/overview``: the platform at one look, cheap enough to be asked again and again."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, security_scheme, tag

from collidium import operations, outbox
from collidium.api.answers import answer
from collidium.api.authentication import only_operators
from collidium.api.context import platform
from collidium.api.schemas import OverviewModel
from collidium.benchmarks.tasks import tasklist
from collidium.simulations import followers, reports, totals

blueprint = Blueprint("admin_overview", __name__, url_prefix="/admin")
blueprint.before_request(only_operators)


@blueprint.get("/overview")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@document_response(OverviewModel)
async def overview() -> Response:
    """The platform at one look: frozen or not, the queue, today and this month, and what is wrong."""
    here = platform()
    return answer(
        OverviewModel.of(
            here,
            freeze=await operations.current_freeze(),
            queue=await totals.queue(),
            standing=await reports.standing(),
            followers=await followers.followers(),
            webhooks_pending=await outbox.backlog(),
            tasks=await tasklist.list_tasks(here),
        )
    )
