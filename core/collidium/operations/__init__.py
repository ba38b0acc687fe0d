"""What operators do: freeze, ban, grant, and the log of it all."""

from collidium.operations.actions import ban, freeze, grant
from collidium.operations.audit import AuditRecord, audit_log, record
from collidium.operations.freeze import is_frozen, is_frozen_until_done

__all__ = [
    "AuditRecord",
    "audit_log",
    "ban",
    "freeze",
    "grant",
    "is_frozen",
    "is_frozen_until_done",
    "record",
]
