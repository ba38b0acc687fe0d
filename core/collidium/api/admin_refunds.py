"""``/admin/refunds``: give back what was charged for failures that were not their owners' doing after all."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import (
    document_headers,
    document_response,
    operation_id,
    security_scheme,
    tag,
    validate_request,
)

from collidium.api.answers import answer
from collidium.api.authentication import only_operators, request_id, require_operator
from collidium.api.idempotency import idempotent
from collidium.api.schemas import IdempotencyHeaders, RefundsBody
from collidium.errors import InvalidInput
from collidium.records import Refunds
from collidium.simulations import refunds

blueprint = Blueprint("admin_refunds", __name__, url_prefix="/admin")
blueprint.before_request(only_operators)


@blueprint.post("/refunds")
@operation_id("refunds")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@document_headers(IdempotencyHeaders)
@validate_request(RefundsBody)
@document_response(Refunds)
async def refund(data: RefundsBody) -> Response:
    """Show, and with `apply` give back, what is still charged for requests that failed in some time."""
    if not data.apply:
        return answer(await refunds.preview(refunds.Window(data.begin, data.end)))
    if data.digest is None:
        raise InvalidInput(
            "digest: send that of the preview, so that what is paid is what was seen",
            errors=[{"field": "digest", "detail": "needed to apply refunds"}],
        )
    return await _pay(data=data, digest=data.digest)


@idempotent
async def _pay(data: RefundsBody, digest: str) -> Response:
    paid = await refunds.refund(
        refunds.Window(data.begin, data.end),
        digest,
        data.note,
        actor=require_operator(),
        http_request_id=request_id(),
    )
    return answer(paid)
