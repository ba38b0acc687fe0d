"""What operators do: freeze, ban, grant, and the log of it all."""

from collidium.operations.actions import (
    Freeze,
    audit_log,
    ban,
    current_freeze,
    freeze,
    grant,
    is_frozen,
    is_frozen_until_done,
    record,
)

__all__ = [
    "Freeze",
    "audit_log",
    "ban",
    "current_freeze",
    "freeze",
    "grant",
    "is_frozen",
    "is_frozen_until_done",
    "record",
]
