"""``/admin/operators``: operators with tokens of their own. All of it needs the scope ``all``."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_request

from collidium import operations
from collidium.api.answers import answer, answer_list
from collidium.api.authentication import request_id, require_operator
from collidium.api.idempotency import idempotent
from collidium.api.operator_schemas import OperatorBody
from collidium.records import Operator

blueprint = Blueprint("operators", __name__, url_prefix="/operators")


@blueprint.get("")
@document_response(list[Operator])
async def operators() -> Response:
    """Operators with tokens of their own, by name, also withdrawn ones."""
    return answer_list(await operations.operators())


@blueprint.post("")
@operation_id("add_operator")
@validate_request(OperatorBody)
@document_response(Operator)
async def add(data: OperatorBody) -> Response:
    """Add an operator and return its token. It takes no key: the answer is kept nowhere."""
    return answer(
        await operations.add_operator(
            *(data.name, data.scopes, data.challenge), actor=require_operator(), http_request_id=request_id()
        )
    )


@blueprint.post("/<name>/withdraw")
@operation_id("withdraw_operator")
@document_response(Operator)
@idempotent
async def withdraw(name: str) -> Response:
    """Withdraw an operator, whose token is refused from the next call on."""
    withdrawn = await operations.withdraw_operator(
        name, actor=require_operator(), http_request_id=request_id()
    )
    return answer(withdrawn)
