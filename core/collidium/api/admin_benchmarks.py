"""``/admin/submissions``, ``/admin/benchmark``: what operators decide about scores."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, security_scheme, tag

from collidium.api.answers import answer
from collidium.api.authentication import request_id, require_operator
from collidium.api.context import platform
from collidium.api.schemas import Closed, SubmissionModel
from collidium.benchmarks import phases, verification

blueprint = Blueprint("admin_benchmarks", __name__, url_prefix="/admin")


@blueprint.before_request
async def only_operators() -> None:
    """Before anything of the request is read."""
    require_operator()


@blueprint.post("/submissions/<submission_id>/verify")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@document_response(SubmissionModel)
async def verify(submission_id: str) -> Response:
    """Verify what a submission reports of itself, so that it earns what it is worth; once, however often."""
    verified = await verification.verify(
        platform(), submission_id, actor=require_operator(), http_request_id=request_id()
    )
    return answer(SubmissionModel.model_validate(verified))


@blueprint.post("/benchmark/<task>/close")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@document_response(Closed)
async def close(task: str) -> Response:
    """End a task's public phase: scores on the events that were held back count, and are paid."""
    part = await phases.close(platform(), task, actor=require_operator(), http_request_id=request_id())
    return answer(Closed(task=task, truth_version=str(part)))
