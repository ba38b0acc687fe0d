"""Operators, what they do (freeze, ban, grant), and the log of it all."""

from collidium.operations.actions import (
    READ_FREEZE,
    SHARE_FREEZE,
    Freeze,
    audit_log,
    ban,
    current_freeze,
    forget,
    freeze,
    grant,
    is_frozen,
    record,
    recorded,
)
from collidium.operations.operators import (
    FIRST,
    Scope,
    add_operator,
    allows,
    operator_of,
    operators,
    withdraw_operator,
)

__all__ = [
    "FIRST",
    "READ_FREEZE",
    "SHARE_FREEZE",
    "Freeze",
    "Scope",
    "add_operator",
    "allows",
    "audit_log",
    "ban",
    "current_freeze",
    "forget",
    "freeze",
    "grant",
    "is_frozen",
    "operator_of",
    "operators",
    "record",
    "recorded",
    "withdraw_operator",
]
