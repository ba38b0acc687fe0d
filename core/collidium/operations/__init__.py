"""What operators do: freeze, ban, grant, and the log of it all."""

from collidium.operations.actions import audit_log, ban, freeze, grant, record
from collidium.operations.freeze import Freeze, current_freeze, is_frozen, is_frozen_until_done

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
