"""``/admin``: what operators do, each action recorded with their names."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import (
    document_headers,
    document_response,
    operation_id,
    validate_querystring,
    validate_request,
)

from collidium import operations
from collidium.api.answers import Page, answer, cut, id_cursor, page_of
from collidium.api.authentication import request_id, require_operator
from collidium.api.context import platform
from collidium.api.idempotency import idempotent
from collidium.api.operator_schemas import BanBody, FreezeQuery, GrantBody, RefundsBody
from collidium.api.schemas import IdempotencyHeaders
from collidium.benchmarks.submissions import standing
from collidium.errors import InvalidInput
from collidium.records import AuditEntry, Banned, Frozen, Granted, Refunds
from collidium.simulations import refunds

blueprint = Blueprint("actions", __name__)


@blueprint.post("/grant")
@validate_request(GrantBody)
@document_response(Granted)
@idempotent
async def grant(data: GrantBody) -> Response:
    """Grant credits to an account, or take them with a negative delta."""
    entry = await operations.grant(
        data.hub_username, data.delta, data.reason, actor=require_operator(), http_request_id=request_id()
    )
    granted = Granted(
        hub_username=data.hub_username, new_balance=entry.balance_after, transaction_id=entry.id
    )
    return answer(granted)


@blueprint.post("/ban")
@validate_request(BanBody)
@document_response(Banned)
@idempotent
async def ban(data: BanBody) -> Response:
    """Ban or unban an account; a name that never signed in can be banned in advance."""
    account = await standing.ban(
        *(platform(), data.hub_username, data.banned, data.note),
        actor=require_operator(),
        http_request_id=request_id(),
    )
    return answer(Banned(hub_username=account.hub_username, banned=account.banned))


@blueprint.post("/freeze")
@validate_querystring(FreezeQuery)
@document_response(Frozen)
@idempotent
async def freeze(query_args: FreezeQuery) -> Response:
    """Turn the kill switch for new simulation requests on or off."""
    await operations.freeze(
        query_args.frozen, query_args.note, actor=require_operator(), http_request_id=request_id()
    )
    return answer(Frozen(submissions_frozen=query_args.frozen))


@blueprint.get("/audit")
@validate_querystring(Page)
@document_response(list[AuditEntry])
async def audit(query_args: Page) -> Response:
    """What operators did, newest first."""
    records = await operations.audit_log(limit=query_args.limit + 1, before=id_cursor(query_args))
    page, last = cut(records, query_args.limit)
    return page_of(page, query_args, last.id if last else None).response()


@blueprint.post("/refunds")
@operation_id("refunds")
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
