"""``/admin/usage``, ``/admin/analytics``: what was ordered, by whom, and how it ended."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, security_scheme, tag, validate_querystring

from collidium.api.answers import answer, answer_list
from collidium.api.authentication import only_operators
from collidium.api.schemas import DaysQuery, MonthQuery, UsageQuery
from collidium.records import ChannelUsage, DayUsage, Failures, Usage
from collidium.simulations import reports

blueprint = Blueprint("reports", __name__, url_prefix="/admin")
blueprint.before_request(only_operators)


@blueprint.get("/usage")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@validate_querystring(UsageQuery)
@document_response(Usage)
async def usage(query_args: UsageQuery) -> Response:
    """This month's node-hours and requests, and the accounts that used most."""
    return answer(await reports.usage(query_args.limit))


@blueprint.get("/analytics/channels")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@validate_querystring(MonthQuery)
@document_response(list[ChannelUsage])
async def channels(query_args: MonthQuery) -> Response:
    """Requests and node-hours of each channel in a month, most node-hours first."""
    found = await reports.channels(query_args.month)
    return answer_list(found)


@blueprint.get("/analytics/daily")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@validate_querystring(DaysQuery)
@document_response(list[DayUsage])
async def daily(query_args: DaysQuery) -> Response:
    """Requests and node-hours of each of the last days, oldest first."""
    return answer_list(await reports.daily(query_args.days))


@blueprint.get("/analytics/failures")
@tag(["admin"])
@security_scheme([{"admin_token": []}])
@validate_querystring(MonthQuery)
@document_response(Failures)
async def failures(query_args: MonthQuery) -> Response:
    """How many of the requests that ended in a month failed."""
    return answer(await reports.failures(query_args.month))
