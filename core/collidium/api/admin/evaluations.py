"""``/admin/evaluations``: everybody's models that the server runs."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring

from collidium import accounts
from collidium.api.admin.benchmarks import by
from collidium.api.answers import answer
from collidium.api.evaluations import listed
from collidium.api.idempotency import idempotent
from collidium.api.schemas import AllEvaluationsQuery
from collidium.benchmarks.submissions import evaluations
from collidium.records import Evaluation

blueprint = Blueprint("evaluations", __name__, url_prefix="/evaluations")


@blueprint.get("")
@operation_id("evaluations")
@validate_querystring(AllEvaluationsQuery)
@document_response(list[Evaluation])
async def list_(query_args: AllEvaluationsQuery) -> Response:
    """Models of everybody that the server runs or ran, newest first."""
    user = query_args.user
    return await listed(query_args, None if user is None else (await accounts.find(user)).id)


@blueprint.post("/<evaluation_id>/cancel")
@operation_id("cancel_evaluation")
@document_response(Evaluation)
@idempotent
async def cancel(evaluation_id: str) -> Response:
    """Cancel the evaluation of any account's model."""
    return answer(await evaluations.operate(evaluation_id, "cancel", **by()))


@blueprint.post("/<evaluation_id>/rerun")
@operation_id("rerun_evaluation")
@document_response(Evaluation)
@idempotent
async def rerun(evaluation_id: str) -> Response:
    """Run a model again whose evaluation failed or was cancelled."""
    return answer(await evaluations.operate(evaluation_id, "rerun", **by()))
