"""Refunds by operators: the remaining charge of all requests that failed in a window of time.

A failure that its owner caused costs the node-hours that it used (``orders.credits_kept``). If a hub or a
runner caused it after all, operators refund the rest: they preview the refunds, and exactly these are paid.
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

#: Maximum number of requests that are refunded at once.
MAX_REQUESTS: Final = 1000
LONGEST: Final = timedelta(days=31)
#: Times between these can be converted without overflow.
FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

#: In thousandths, because SQLite compares decimals as text.
_KEPT: Final = "CAST(ROUND((credits_charged - credits_refunded) * 1000) AS BIGINT)"
#: The columns that a refund needs: loading a thousand whole rows blocks the event loop.
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
class RefundWindow:
    """From ``begin`` until before ``end``, both with a time zone. Raises InvalidInput."""

    begin: datetime
    end: datetime

    def __post_init__(self) -> None:
        if not FIRST <= self.begin < self.end <= LAST or self.end - self.begin > LONGEST:
            detail = f"a window of time ends after it begins, and at most {LONGEST.days} days later"
            raise InvalidInput(detail, errors=[{"field": name, "detail": detail} for name in ("from", "to")])


async def preview(window: RefundWindow) -> Refunds:
    """Return what :func:`refund` would pay. Raises InvalidInput for more than ``MAX_REQUESTS`` requests."""
    return _shown(await _failed(window))


@transactional
async def refund(
    window: RefundWindow, digest: str, note: str | None, *, actor: str, http_request_id: str
) -> Refunds:
    """Pay all refunds of the preview with that ``digest``.

    Raises Conflict, and pays none, if the refunds have changed since.
    """
    rows = await _failed(window).select_for_update()
    seen = _shown(rows)
    if seen.digest != digest:
        current = f"{len(seen.requests)} requests, {seen.total:.3f} credits"
        raise Conflict(
            f"the refunds have changed since the preview, to {current}: preview them again",
            errors=[{"field": "digest", "detail": "not the digest of the current refunds"}],
        )
    await accounts.lock({row.account_id for row in rows})
    for row in rows:
        await _pay(row, note, actor, http_request_id)
    return structs.replace(seen, applied=True)


def _failed(window: RefundWindow) -> QuerySet[SimulationRequest]:
    """Query the failed requests without a full refund, up to one more than the maximum."""
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
        # Another key than that of the refund at the end of the request. Paid once: nothing is left to refund.
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
    return Refund.of(row, failed_at=row.finished_at, refund=row.credits_charged - row.credits_refunded)


def _digest(refunds: Iterable[Refund]) -> str:
    lines = "".join(f"{refund.request_id} {refund.refund:.3f}\n" for refund in refunds)
    return hashlib.sha256(lines.encode()).hexdigest()
