"""``/v1/me``: the caller's account and ledger."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, validate_querystring

from collidium import accounts
from collidium.api.answers import Page, answer, cut, id_cursor, page_of
from collidium.api.authentication import caller, signed_in
from collidium.records import Account, Transaction

blueprint = Blueprint("accounts", __name__)


@blueprint.get("/v1/me")
@signed_in
@document_response(Account)
async def me() -> Response:
    """Your account and its balance."""
    return answer(Account.of(await caller()))


@blueprint.get("/v1/me/transactions")
@signed_in
@validate_querystring(Page)
@document_response(list[Transaction])
async def transactions(query_args: Page) -> Response:
    """Your ledger entries, newest first."""
    return await ledger_page((await caller()).id, query_args)


async def ledger_page(account_id: int, query: Page) -> Response:
    """A page of an account's ledger; for operators, too."""
    entries = await accounts.entries(account_id, limit=query.limit + 1, before=id_cursor(query))
    page, last = cut(entries, query.limit)
    return page_of(page, query, last.id if last else None).response()
