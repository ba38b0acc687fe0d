"""``/admin/accounts``: everybody's accounts and ledgers."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring

from collidium import accounts
from collidium.api.accounts import ledger_page
from collidium.api.answers import Page, answer, page_of
from collidium.api.operator_schemas import AccountsQuery
from collidium.records import Account, Transaction

blueprint = Blueprint("accounts", __name__, url_prefix="/accounts")


@blueprint.get("")
@operation_id("accounts")
@validate_querystring(AccountsQuery)
@document_response(list[Account])
async def everybody(query_args: AccountsQuery) -> Response:
    """Accounts, the newest first or as `sort` says."""
    found, following = await accounts.list_accounts(
        limit=query_args.limit,
        search=query_args.search,
        banned=query_args.banned,
        sort=query_args.sort,
        cursor=query_args.cursor,
    )
    return page_of([Account.of(account) for account in found], query_args, following).response()


@blueprint.get("/<name>")
@document_response(Account)
async def account(name: str) -> Response:
    """An account, by name."""
    return answer(Account.of(await accounts.find(name)))


@blueprint.get("/<name>/transactions")
@validate_querystring(Page)
@document_response(list[Transaction])
async def transactions(name: str, query_args: Page) -> Response:
    """An account's ledger entries, newest first."""
    return await ledger_page((await accounts.find(name)).id, query_args)
