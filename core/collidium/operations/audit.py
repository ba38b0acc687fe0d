"""The audit log: who did what, when, to whom. Written in the transaction of the deed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from collidium.operations.models import AuditEntry


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One deed."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    details: Mapping[str, Any]
    http_request_id: str


async def record(
    actor: str, action: str, target: str, details: Mapping[str, Any], http_request_id: str
) -> None:
    """Write one deed; call it inside the transaction that does it."""
    await AuditEntry.create(
        actor=actor, action=action, target=target, details=dict(details), http_request_id=http_request_id
    )


async def audit_log(*, limit: int, before: int | None = None) -> list[AuditRecord]:
    """Up to ``limit`` deeds, newest first, those with an id below ``before``."""
    query = AuditEntry.all()
    if before is not None:
        query = query.filter(id__lt=before)
    return [
        AuditRecord(
            entry.id, entry.at, entry.actor, entry.action, entry.target, entry.details, entry.http_request_id
        )
        for entry in await query.order_by("-id").limit(limit)
    ]
