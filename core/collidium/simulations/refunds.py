"""Refunds that operators decide on: what failed in a window of time and was not given back in full.

What its owner brought about costs what it used (``orders.credits_kept``). Where a hub or a runner was to
blame after all, operators give back the rest: they look at it first, and what is paid is what they saw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, cast

from msgspec import structs
from tortoise.expressions import RawSQL
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import accounts, operations
from collidium.database import transactional
from collidium.errors import Conflict, InvalidInput
from collidium.records import Refund, Refunds
from collidium.simulations.models import HistoryLine, SimulationRequest, State

#: Most requests that are refunded at once.
MAX_REQUESTS: Final = 1000
LONGEST: Final = timedelta(days=31)
#: Nothing failed before or after, and no conversion of a time in between overflows.
FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

#: Thousandths, because SQLite compares decimals as text.
_KEPT: Final = "CAST(ROUND((credits_charged - credits_refunded) * 1000) AS BIGINT)"
#: What a refund needs of a request: to make whole rows of a thousand holds up the event loop.
_READ: Final = (
    "id",
    "account_id",
    "state",
    "request_id",
    "hub_username",
    "channel",
    "finished_at",
    "reason",
    "credits_charged",
    "credits_refunded",
)


@dataclass(frozen=True, slots=True)
class Window:
    """From ``begin`` until before ``end``, both with a time zone; raises InvalidInput for what is none."""

    begin: datetime
    end: datetime

    def __post_init__(self) -> None:
        if not FIRST <= self.begin < self.end <= LAST or self.end - self.begin > LONGEST:
            detail = f"a window of time ends after it begins, and at most {LONGEST.days} days later"
            raise InvalidInput(detail, errors=[{"field": "to", "detail": detail}])


async def preview(window: Window) -> Refunds:
    """What would be given back. Raises InvalidInput where that is of more than ``MAX_REQUESTS`` requests."""
    return _shown(await _failed(window))


@transactional
async def refund(
    window: Window, digest: str, note: str | None, *, actor: str, http_request_id: str
) -> Refunds:
    """Give back what a preview with that ``digest`` showed, all or nothing.

    Raises Conflict where it would be something else by now.
    """
    rows = await _failed(window).select_for_update()
    seen = _shown(rows)
    if seen.digest != digest:
        now_there = f"{len(seen.requests)} requests, {seen.total:.3f} credits"
        raise Conflict(
            f"what would be refunded is not what was previewed, but {now_there}: look at it again",
            errors=[{"field": "digest", "detail": "not the digest of what would be refunded now"}],
        )
    await accounts.lock({row.account_id for row in rows})
    for row in rows:
        await _pay(row, note, actor, http_request_id)
    return structs.replace(seen, applied=True)


def _failed(window: Window) -> QuerySet[SimulationRequest]:
    """What failed in a window and was not given back in full, and one more than may be refunded at once."""
    begin, end = window.begin.astimezone(UTC), window.end.astimezone(UTC)
    failed = SimulationRequest.filter(state=State.FAILED, finished_at__gte=begin, finished_at__lt=end)
    kept = failed.annotate(kept=RawSQL(_KEPT)).filter(kept__gt=0)
    return kept.order_by("finished_at", "id").limit(MAX_REQUESTS + 1).only(*_READ)


def _shown(rows: Sequence[SimulationRequest]) -> Refunds:
    if len(rows) > MAX_REQUESTS:
        last = cast(datetime, rows[MAX_REQUESTS].finished_at).isoformat()
        detail = f"more than {MAX_REQUESTS} requests failed in that time; end it at {last} or before"
        raise InvalidInput(detail, errors=[{"field": "to", "detail": detail}])
    refunds = tuple(_refund(row) for row in rows)
    total = sum((refund.refund for refund in refunds), Decimal(0))
    return Refunds(False, _digest(refunds), total, refunds)


async def _pay(row: SimulationRequest, note: str | None, actor: str, http_request_id: str) -> None:
    rest = row.credits_charged - row.credits_refunded
    await accounts.post(
        row.account_id,
        rest,
        reason="simulation_refund",
        # In addition to the refund of its end, and at most once: it leaves nothing to be given back.
        reference=f"{row.request_id}:rest",
        note=note or "",
    )
    row.credits_refunded = row.credits_charged
    await row.save(update_fields=["credits_refunded"])
    detail = f"an operator gave back {rest} credits"
    await HistoryLine.create(request_id=row.id, at=now(), state=row.state, reason=detail)
    details = {"hub_username": row.hub_username, "credits": str(rest)}
    if note is not None:
        details["note"] = note
    await operations.record(actor, "refund", row.request_id, details, http_request_id)


def _refund(row: SimulationRequest) -> Refund:
    # What has failed has an end.
    return Refund.of(row, failed_at=row.finished_at, refund=row.credits_charged - row.credits_refunded)


def _digest(refunds: Iterable[Refund]) -> str:
    lines = "".join(f"{refund.request_id} {refund.refund:.3f}\n" for refund in refunds)
    return hashlib.sha256(lines.encode()).hexdigest()
