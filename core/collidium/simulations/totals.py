"""Running totals of usage, updated in the transactions that change requests; and their audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from tortoise.expressions import F
from tortoise.timezone import now

from collidium.database import Statement, connection, together, transactional
from collidium.errors import TooManyRequests
from collidium.simulations.models import SimulationRequest, UsageTotal

#: Node-hours are added up in thousandths.
MILLI: Final = Decimal(1000)


@dataclass(frozen=True, slots=True)
class TotalMismatch:
    """A running total that differs from the sum over its requests."""

    total: str
    kept: str
    counted: str


def add_request(row: SimulationRequest) -> list[Statement]:
    """Return the statements that count a new request with its estimate.

    Run them in the transaction that inserts the request, and pass their row to :func:`check_month`: they lock
    the month until the transaction ends.
    """
    milli = _milli(row.node_hours)
    month, *others = ([_id(*total), *total, 1, milli, 0, 0] for total in _of(row))
    return [
        Statement(f"{_COUNTED.format(rows=_ROW)} RETURNING milli_node_hours", month),
        # Without a row to return, so that the month is first.
        Statement(_COUNTED.format(rows=", ".join([_ROW] * len(others))), [*chain.from_iterable(others)]),
    ]


_ROW: Final = "(?, ?, ?, ?, ?, ?, ?, ?)"
_COUNTED: Final = """
INSERT INTO usage_totals (id, kind, period, key, requests, milli_node_hours, finished, failed) VALUES {rows}
ON CONFLICT (id) DO UPDATE SET requests = usage_totals.requests + 1,
    milli_node_hours = usage_totals.milli_node_hours + excluded.milli_node_hours
"""


def check_month(row: Mapping[str, Any], monthly_node_hours: Decimal) -> None:
    """Raise TooManyRequests if the month's total exceeds its limit."""
    if row["milli_node_hours"] > monthly_node_hours * MILLI:
        raise TooManyRequests(
            "the platform's node-hours for this month are used up; try again next month",
            retry_after=_seconds_to_next_month(now()),
        )


async def end_request(row: SimulationRequest, used: Decimal, *, failed: bool) -> None:
    """Replace the estimate of a request by the node-hours that it used, and count its end.

    Call it in the transaction that ends the request, before ``row.node_hours`` changes.
    """
    ended = month_of(row.finished_at or now())
    for month in sorted({month_of(row.created_at), ended}):
        await _lock_month(month)
    difference = _milli(used) - _milli(row.node_hours)
    if difference:
        await UsageTotal.filter(id__in=[_id(*total) for total in _of(row)]).update(
            milli_node_hours=F("milli_node_hours") + difference
        )
    await UsageTotal.filter(id=_id("month", ended)).update(
        finished=F("finished") + 1, failed=F("failed") + int(failed)
    )


def month_of(moment: datetime) -> str:
    """Return the month of a moment in UTC, ``2026-11``."""
    return f"{moment:%Y-%m}"


def day_of(moment: datetime) -> str:
    """Return the day of a moment in UTC, ``2026-11-20``."""
    return f"{moment:%Y-%m-%d}"


async def rename(name: str, becomes: str) -> None:
    """Move the totals of an account to another name."""
    renamed = (
        "UPDATE usage_totals SET id = 'account:' || period || ':' || ?, key = ? "
        "WHERE kind = 'account' AND key = ?"
    )
    await together(Statement(renamed, (becomes, becomes, name)))


async def audit() -> list[TotalMismatch]:
    """Return every running total that differs from the sum over its requests."""
    _, rows = await connection().execute_query(_COMPARED)
    totals = [(row["id"], _numbers(row, "kept_"), _numbers(row)) for row in rows]
    return [
        TotalMismatch(total, _described(kept), _described(counted))
        for total, kept, counted in totals
        if kept != counted
    ]


@transactional
async def rebuild() -> None:
    """Recompute every running total from the requests."""
    await UsageTotal.all().delete()
    _, rows = await connection().execute_query(_COMPARED)
    totals = []
    for row in rows:
        total = _total(*row["id"].split(":", 2))
        total.requests, total.milli_node_hours, total.finished, total.failed = _numbers(row)
        totals.append(total)
    await UsageTotal.bulk_create(totals, batch_size=500)


async def _lock_month(month: str) -> None:
    """Lock the total of a month, and create it if there is none."""
    total = UsageTotal.select_for_update().filter(id=_id("month", month))
    if await total.first() is None:
        await UsageTotal.bulk_create([_total("month", month)], ignore_conflicts=True)
        await total.first()


def _of(row: SimulationRequest) -> list[tuple[str, str, str]]:
    """Return kind, period and key of the totals that a request counts for, by when it was ordered."""
    month = row.created_day[:7]
    return [
        ("month", month, ""),
        ("day", row.created_day, ""),
        ("channel", month, row.channel),
        ("account", month, row.hub_username),
    ]


def _total(kind: str, period: str, key: str = "") -> UsageTotal:
    return UsageTotal(id=_id(kind, period, key), kind=kind, period=period, key=key)


def _id(kind: str, period: str, key: str = "") -> str:
    return f"{kind}:{period}:{key}"


def _milli(node_hours: Decimal) -> int:
    return int((node_hours * MILLI).to_integral_value())


def _seconds_to_next_month(moment: datetime) -> int:
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=32)).replace(day=1)
    return int((following - moment).total_seconds()) + 1


def _numbers(row: Mapping[str, Any], of: str = "") -> tuple[int, int, int, int]:
    requests, milli, finished, failed = (
        int(row[of + name]) for name in ("requests", "milli", "finished", "failed")
    )
    return requests, milli, finished, failed


def _described(numbers: tuple[int, int, int, int]) -> str:
    requests, milli, finished, failed = numbers
    return f"{requests} requests, {milli / 1000:.3f} node-hours, {finished} finished, {failed} failed"


#: Sums and totals in one statement, so that they are of one moment. A month counts both the requests that
#: were ordered in it and those that ended in it.
_COMPARED: Final = """
WITH ordered AS (
    SELECT created_day, substr(created_day, 1, 7) AS month, channel, hub_username, finished_month, state,
           CAST(ROUND(node_hours * 1000) AS BIGINT) AS milli
    FROM simulation_requests
), counted AS (
    SELECT 'day:' || created_day || ':' AS id, 1 AS requests, milli, 0 AS finished, 0 AS failed FROM ordered
    UNION ALL SELECT 'month:' || month || ':', 1, milli, 0, 0 FROM ordered
    UNION ALL SELECT 'channel:' || month || ':' || channel, 1, milli, 0, 0 FROM ordered
    UNION ALL SELECT 'account:' || month || ':' || hub_username, 1, milli, 0, 0 FROM ordered
    UNION ALL SELECT 'month:' || finished_month || ':', 0, 0, 1, CASE WHEN state = 'failed' THEN 1 ELSE 0 END
    FROM ordered WHERE finished_month IS NOT NULL
), compared AS (
    SELECT id, requests, milli, finished, failed,
           0 AS kept_requests, 0 AS kept_milli, 0 AS kept_finished, 0 AS kept_failed FROM counted
    UNION ALL SELECT id, 0, 0, 0, 0, requests, milli_node_hours, finished, failed FROM usage_totals
)
SELECT id, SUM(requests) AS requests, SUM(milli) AS milli, SUM(finished) AS finished, SUM(failed) AS failed,
       SUM(kept_requests) AS kept_requests, SUM(kept_milli) AS kept_milli,
       SUM(kept_finished) AS kept_finished, SUM(kept_failed) AS kept_failed
FROM compared GROUP BY id ORDER BY id
"""
