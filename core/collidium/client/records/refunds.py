"""Refunds that operators decide on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Refund:
    """What is given back of one request, or would be; ``credits_refunded`` is what was before."""

    request_id: str
    hub_username: str
    channel: str
    failed_at: datetime
    credits_charged: Decimal
    credits_refunded: Decimal
    refund: Decimal
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Refunds:
    """What would be given back, or was (``applied``), oldest failure first; ``digest`` is of these."""

    applied: bool
    digest: str
    total: Decimal
    requests: tuple[Refund, ...]
