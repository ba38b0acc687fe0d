"""``/admin``: accounts, operators, audited actions and refunds."""

from __future__ import annotations

from quart import Blueprint, Response, request
from quart_schema import (
    document_headers,
    document_response,
    operation_id,
    validate_querystring,
    validate_request,
)

from collidium import accounts, operations
from collidium.accounts import idempotency
from collidium.api.accounts import ledger_page
from collidium.api.answers import PageQuery, answer, answer_list, answer_page, id_cursor, page_of
from collidium.api.authentication import OperatorCaller, by_operator
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.idempotency import idempotent
from collidium.api.operator_schemas import (
    AccountsQuery,
    BanBody,
    FreezeQuery,
    GrantBody,
    OperatorBody,
    RefundsBody,
)
from collidium.api.schemas import IdempotencyHeaders
from collidium.errors import Conflict, InvalidInput
from collidium.records import Account, AuditEntry, Banned, Frozen, Granted, Operator, Refunds, Transaction
from collidium.simulations import refunds
from collidium.submissions import rulings

blueprint = Blueprint("actions", __name__)


@blueprint.post("/grant")
@validate_request(GrantBody)
@document_response(Granted)
@idempotent
async def grant(caller: OperatorCaller, data: GrantBody) -> Response:
    """Grant credits to an account, or deduct them with a negative delta."""
    return answer(await operations.grant(data.hub_username, data.delta, data.reason, **caller.audit))


@blueprint.post("/ban")
@validate_request(BanBody)
@document_response(Banned)
@idempotent
async def ban(caller: OperatorCaller, data: BanBody) -> Response:
    """Ban or unban an account; an unknown name can be banned in advance."""
    account = await rulings.ban(platform(), data.hub_username, data.banned, data.note, **caller.audit)
    return answer(Banned(hub_username=account.hub_username, banned=account.banned))


@blueprint.post("/freeze")
@validate_querystring(FreezeQuery)
@document_response(Frozen)
@idempotent
async def freeze(caller: OperatorCaller, query_args: FreezeQuery) -> Response:
    """Stop accepting simulation requests, or accept them again."""
    await operations.freeze(query_args.frozen, query_args.note, **caller.audit)
    return answer(Frozen(submissions_frozen=query_args.frozen))


@blueprint.get("/audit")
@validate_querystring(PageQuery)
@document_response(list[AuditEntry])
async def audit(query_args: PageQuery) -> Response:
    """Operator actions, newest first."""
    records = await operations.audit_log(limit=query_args.limit + 1, before=id_cursor(query_args))
    return answer_page(records, query_args, lambda last: last.id)


@blueprint.post("/refunds")
@operation_id("refunds")
@document_headers(IdempotencyHeaders)
@validate_request(RefundsBody)
@document_response(Refunds)
async def refund(data: RefundsBody) -> Response:
    """Preview, or with `apply` make, refunds for requests that failed in a period."""
    if not data.apply:
        idempotency.checked(request.headers.get("Idempotency-Key", "none"))
        return answer(await refunds.preview(refunds.RefundWindow(data.begin, data.end)))
    if data.digest is None:
        raise InvalidInput(
            "digest: send that of the preview, so that what is paid is what was seen",
            errors=[{"field": "digest", "detail": "needed to apply refunds"}],
        )
    return await _pay(data=data, digest=data.digest)


@idempotent
async def _pay(caller: OperatorCaller, data: RefundsBody, digest: str) -> Response:
    paid = await refunds.refund(refunds.RefundWindow(data.begin, data.end), digest, data.note, **caller.audit)
    return answer(paid)


@blueprint.get("/operators")
@document_response(list[Operator])
async def operators() -> Response:
    """Operators that have their own token, by name, including withdrawn ones."""
    return answer_list(await operations.operators())


@blueprint.post("/operators")
@operation_id("add_operator")
@validate_request(OperatorBody)
@document_response(Operator)
@by_operator
@raises(Conflict)
async def add(caller: OperatorCaller, data: OperatorBody) -> Response:
    """Add an operator and return its token. It takes no Idempotency-Key: the response is not stored."""
    return answer(await operations.add_operator(data.name, data.scopes, data.challenge, **caller.audit))


@blueprint.post("/operators/<name>/withdraw")
@operation_id("withdraw_operator")
@document_response(Operator)
@idempotent
async def withdraw(caller: OperatorCaller, name: str) -> Response:
    """Withdraw an operator; its token is rejected from the next call on."""
    withdrawn = await operations.withdraw_operator(name, **caller.audit)
    return answer(withdrawn)


@blueprint.get("/accounts")
@operation_id("accounts")
@validate_querystring(AccountsQuery)
@document_response(list[Account])
async def list_accounts(query_args: AccountsQuery) -> Response:
    """Accounts, the newest first or in the order of `sort`."""
    found, following = await accounts.list_accounts(
        limit=query_args.limit,
        search=query_args.search,
        banned=query_args.banned,
        sort=query_args.sort,
        cursor=query_args.cursor,
    )
    return page_of([Account.of(account) for account in found], query_args, following).response()


@blueprint.get("/accounts/<name>")
@document_response(Account)
async def account(name: str) -> Response:
    """An account, by name."""
    return answer(Account.of(await accounts.find(name)))


@blueprint.get("/accounts/<name>/transactions")
@validate_querystring(PageQuery)
@document_response(list[Transaction])
async def transactions(name: str, query_args: PageQuery) -> Response:
    """An account's ledger entries, newest first."""
    return await ledger_page((await accounts.find(name)).id, query_args)
