"""``/admin/tasks``, ``/admin/submissions``, ``/admin/benchmark``: what is decided about scores."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring

from collidium import accounts
from collidium.api.answers import answer, answer_list
from collidium.api.authentication import request_id, require_operator
from collidium.api.benchmarks import listed
from collidium.api.context import platform
from collidium.api.idempotency import idempotent
from collidium.api.schemas import SubmissionsQuery
from collidium.benchmarks import tasklist
from collidium.benchmarks.submissions import verification
from collidium.benchmarks.truth import phases
from collidium.records import Closed, Submission, TaskStatus

blueprint = Blueprint("benchmarks", __name__)


@blueprint.get("/tasks")
@document_response(list[TaskStatus])
async def tasks() -> Response:
    """The tasks that are installed or listed, by name; why one takes no submissions."""
    return answer_list(await tasklist.list_tasks(platform().tasks))


@blueprint.get("/submissions")
@validate_querystring(SubmissionsQuery)
@document_response(list[Submission])
async def submissions(query_args: SubmissionsQuery) -> Response:
    """Everybody's submissions, newest first, without their earlier scores."""
    account = None if query_args.user is None else await accounts.find(query_args.user)
    return await listed(query_args, account, unverified=query_args.unverified)


@blueprint.post("/submissions/<submission_id>/verify")
@document_response(Submission)
@idempotent
async def verify(submission_id: str) -> Response:
    """Verify what a submission reports of itself, so that it earns what it is worth; once, however often."""
    verified = await verification.verify(
        platform(), submission_id, actor=require_operator(), http_request_id=request_id()
    )
    return answer(verified)


@blueprint.post("/benchmark/<task>/close")
@operation_id("close_phase")
@document_response(Closed)
@idempotent
async def close(task: str) -> Response:
    """End a task's public phase: scores on the events that were held back count, and are paid."""
    part = await phases.close(platform(), task, actor=require_operator(), http_request_id=request_id())
    return answer(Closed(task=task, truth_version=str(part)))
