"""Reports for operators, read from the running totals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
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

_MONTH: Final = re.compile(r"(?!0000)[0-9]{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Standing:
    """Today and this month (UTC) so far."""

    month: str
    node_hours_today: Decimal
    requests_today: int
    node_hours_month: Decimal
    requests_month: int
    failures: Failures


#: Which request without a lease is due first. By the time: an index of leases has all that have ended.
_DUE: Final = (
    "SELECT due_at FROM simulation_requests WHERE due_at <= ? AND lease || '' = '' ORDER BY due_at LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is not finished."""

    #: Requests by runner and state.
    requests: dict[tuple[str, str], int]
    #: How long the first of them is waiting that is due; 0 where none is.
    overdue_seconds: float
    #: Requests that a process works on.
    leased: int


async def backlog() -> Backlog:
    """What is not finished now; reads no request that has ended."""
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


async def standing() -> Standing:
    """Today and this month, from their two running totals."""
    moment = now()
    month, day = month_of(moment), day_of(moment)
    totals = {
        total.period: total for total in await UsageTotal.filter(id__in=[f"month:{month}:", f"day:{day}:"])
    }
    today, whole = totals.get(day), totals.get(month)
    return Standing(
        month=month,
        node_hours_today=_node_hours(today) if today else Decimal(0),
        requests_today=today.requests if today else 0,
        node_hours_month=_node_hours(whole) if whole else Decimal(0),
        requests_month=whole.requests if whole else 0,
        failures=_failures(month, whole),
    )


async def usage(limit: int) -> Usage:
    """The current month and its ``limit`` accounts with most node-hours."""
    month = month_of(now())
    whole = await UsageTotal.get_or_none(kind="month", period=month)
    users = await _largest("account", month).limit(limit)
    return Usage(
        month=month,
        total_node_hours=_node_hours(whole) if whole else Decimal(0),
        total_requests=whole.requests if whole else 0,
        users=tuple(UserUsage(total.key, _node_hours(total), total.requests) for total in users),
    )


async def channels(month: str | None = None) -> list[ChannelUsage]:
    """Every channel that was ordered in a month (``YYYY-MM``, this one by default), most node-hours first."""
    totals = await _largest("channel", _month(month))
    return [ChannelUsage(total.key, total.requests, _node_hours(total)) for total in totals]


async def daily(days: int) -> list[DayUsage]:
    """The last ``days`` days, today included, oldest first; days without requests as zeros."""
    today = now()
    window = [day_of(today - timedelta(days=back)) for back in reversed(range(days))]
    totals = {total.period: total for total in await UsageTotal.filter(kind="day", period__gte=window[0])}
    return [
        DayUsage(day, _node_hours(totals[day]), totals[day].requests)
        if day in totals
        else DayUsage(day, Decimal(0), 0)
        for day in window
    ]


async def failures(month: str | None = None) -> Failures:
    """How the requests ended that ended in a month (``YYYY-MM``, this one by default)."""
    asked = _month(month)
    return _failures(asked, await UsageTotal.get_or_none(kind="month", period=asked))


def _failures(month: str, total: UsageTotal | None) -> Failures:
    finished, failed = (total.finished, total.failed) if total else (0, 0)
    return Failures(month, 100 * failed / finished if finished else 0.0, failed, finished)


def _month(asked: str | None) -> str:
    """The month that is asked for, or the current one; raises InvalidInput for what is none."""
    if asked is not None and not _MONTH.fullmatch(asked):
        raise InvalidInput("month is written YYYY-MM", errors=[{"field": "month", "detail": "not a month"}])
    return asked or month_of(now())


def _largest(kind: str, period: str) -> QuerySet[UsageTotal]:
    return UsageTotal.filter(kind=kind, period=period).order_by("-milli_node_hours", "key")


def _node_hours(total: UsageTotal) -> Decimal:
    return Decimal(total.milli_node_hours) / MILLI
