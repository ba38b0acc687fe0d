"""Reports for operators: the queue, and usage from the running totals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from tortoise.functions import Count
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium.database import loaded, rows_of
from collidium.errors import InvalidInput
from collidium.records import ChannelUsage, DayUsage, Failures, Usage, UserUsage
from collidium.simulations.models import SimulationRequest, State, UsageTotal
from collidium.simulations.totals import MILLI, day_of, month_of

#: The total of a period without requests.
_NONE: Final = UsageTotal(id="")
MONTH: Final = re.compile(r"(?!0000)[0-9]{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class PeriodTotals:
    """Today and this month (UTC) so far."""

    month: str
    node_hours_today: Decimal
    requests_today: int
    node_hours_month: Decimal
    requests_month: int
    failures: Failures


@dataclass(frozen=True, slots=True)
class Queue:
    """How many requests have not ended."""

    queued: int
    running: int
    #: When the oldest queued request was ordered.
    oldest_queued_at: datetime | None


async def queue() -> Queue:
    """Return the current queue."""
    unfinished = SimulationRequest.filter(state__in=[State.QUEUED, State.RUNNING])
    counted = await unfinished.annotate(number=Count("id")).group_by("state").values_list("state", "number")
    numbers = dict(counted)
    oldest = (
        await SimulationRequest.filter(state=State.QUEUED).order_by("id").only("id", "created_at").first()
    )
    return Queue(
        queued=numbers.get(State.QUEUED, 0),
        running=numbers.get(State.RUNNING, 0),
        oldest_queued_at=oldest.created_at if oldest else None,
    )


#: The first due request without a lease. The concatenation keeps the planner from the index of leases, in
#: which all ended requests are alike.
_DUE: Final = (
    "SELECT due_at FROM simulation_requests WHERE due_at <= ? AND lease || '' = '' ORDER BY due_at LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The unfinished requests."""

    #: Their number by runner and state.
    requests: dict[tuple[str, str], int]
    #: How long the first due request has been waiting, else 0.
    overdue_seconds: float
    #: Number of requests that processes are working on.
    leased: int


async def backlog() -> Backlog:
    """Return the current backlog, without reading requests that have ended."""
    unfinished = SimulationRequest.filter(state__in=[State.QUEUED, State.RUNNING])
    counted = unfinished.annotate(number=Count("id")).group_by("runner", "state")
    rows = await counted.values_list("runner", "state", "number")
    moment = now()
    waiting = [loaded(SimulationRequest, "due_at", row["due_at"]) for row in await rows_of(_DUE, moment)]
    return Backlog(
        {(runner, state): number for runner, state, number in rows},
        (moment - waiting[0]).total_seconds() if waiting else 0.0,
        await SimulationRequest.filter(lease__gt="", leased_until__gt=moment).count(),
    )


async def standing() -> PeriodTotals:
    """Return the totals of today and this month."""
    moment = now()
    month, day = month_of(moment), day_of(moment)
    totals = {
        total.period: total for total in await UsageTotal.filter(id__in=[f"month:{month}:", f"day:{day}:"])
    }
    today, whole = totals.get(day, _NONE), totals.get(month, _NONE)
    return PeriodTotals(
        month=month,
        node_hours_today=_node_hours(today),
        requests_today=today.requests,
        node_hours_month=_node_hours(whole),
        requests_month=whole.requests,
        failures=_failures(month, whole),
    )


async def usage(limit: int) -> Usage:
    """Return the usage of the current month, and of the ``limit`` accounts with most node-hours."""
    month = month_of(now())
    whole = await _month_total(month)
    users = await _largest("account", month).limit(limit)
    return Usage(
        month=month,
        total_node_hours=_node_hours(whole),
        total_requests=whole.requests,
        users=tuple(UserUsage(total.key, _node_hours(total), total.requests) for total in users),
    )


async def channels(month: str | None = None) -> list[ChannelUsage]:
    """Return the usage of each channel in a month (``YYYY-MM``, default this one), most node-hours first."""
    totals = await _largest("channel", _month(month))
    return [ChannelUsage(total.key, total.requests, _node_hours(total)) for total in totals]


async def daily(days: int) -> list[DayUsage]:
    """Return the usage of the last ``days`` days, oldest first, today and days without requests included."""
    today = now()
    window = [day_of(today - timedelta(days=back)) for back in reversed(range(days))]
    totals = {total.period: total for total in await UsageTotal.filter(kind="day", period__gte=window[0])}
    return [
        DayUsage(day, _node_hours(total), total.requests)
        for day, total in ((day, totals.get(day, _NONE)) for day in window)
    ]


async def failures(month: str | None = None) -> Failures:
    """Return the failure rate of requests that ended in a month (``YYYY-MM``, default this one)."""
    asked = _month(month)
    return _failures(asked, await _month_total(asked))


def _failures(month: str, total: UsageTotal) -> Failures:
    rate = 100 * total.failed / total.finished if total.finished else 0.0
    return Failures(month, rate, total.failed, total.finished)


def _month(asked: str | None) -> str:
    """Return the given month, by default the current one. Raises InvalidInput."""
    if asked is not None and not MONTH.fullmatch(asked):
        raise InvalidInput("month is written YYYY-MM", errors=[{"field": "month", "detail": "not a month"}])
    return asked or month_of(now())


async def _month_total(month: str) -> UsageTotal:
    return await UsageTotal.get_or_none(kind="month", period=month) or _NONE


def _largest(kind: str, period: str) -> QuerySet[UsageTotal]:
    return UsageTotal.filter(kind=kind, period=period).order_by("-milli_node_hours", "key")


def _node_hours(total: UsageTotal) -> Decimal:
    return Decimal(total.milli_node_hours) / MILLI
