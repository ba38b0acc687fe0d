"""``/v1/me/submissions``: what an account has submitted."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, validate_querystring

from collidium.accounts import AccountView
from collidium.api.answers import cut, page_of
from collidium.api.authentication import caller, signed_in
from collidium.api.context import platform
from collidium.api.schemas import MySubmissionsQuery
from collidium.benchmarks.submissions import reading
from collidium.records import Submission

blueprint = Blueprint("submissions", __name__, url_prefix="/v1")


@blueprint.get("/me/submissions")
@signed_in
@validate_querystring(MySubmissionsQuery)
@document_response(list[Submission])
async def submissions(query_args: MySubmissionsQuery) -> Response:
    """Your submissions, newest first, without their earlier scores."""
    return await listed(query_args, await caller())


async def listed(
    query: MySubmissionsQuery, account: AccountView | None, *, unverified: bool = False
) -> Response:
    """A page of one account's submissions, or of everybody's; for operators, too."""
    found = await reading.list_submissions(
        platform(),
        limit=query.limit + 1,
        task=query.task,
        account_id=account.id if account else None,
        unverified=unverified,
        after=query.cursor,
    )
    page, last = cut(found, query.limit)
    return page_of(page, query, last.submission_id if last else None).response()
