"""What operators do: freeze, ban, grant, and the log of it all."""

from collidium.operations.actions import (
    READ_FREEZE,
    SHARE_FREEZE,
    Freeze,
    audit_log,
    ban,
    current_freeze,
    freeze,
    grant,
    is_frozen,
    record,
)

__all__ = [
    "READ_FREEZE",
    "SHARE_FREEZE",
    "Freeze",
    "audit_log",
    "ban",
    "current_freeze",
    "freeze",
    "grant",
    "is_frozen",
    "record",
]
