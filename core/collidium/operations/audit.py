"""The audit log: who did what, when, to whom. Written in the transaction of the deed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collidium.operations import models
from collidium.records import AuditEntry


async def record(
    actor: str, action: str, target: str, details: Mapping[str, Any], http_request_id: str
) -> None:
    """Write one deed; call it inside the transaction that does it."""
    await models.AuditEntry.create(
        actor=actor, action=action, target=target, details=dict(details), http_request_id=http_request_id
    )


async def audit_log(*, limit: int, before: int | None = None) -> list[AuditEntry]:
    """Up to ``limit`` deeds, newest first, those with an id below ``before``."""
    query = models.AuditEntry.all()
    if before is not None:
        query = query.filter(id__lt=before)
    return [AuditEntry.of(entry) for entry in await query.order_by("-id").limit(limit)]
