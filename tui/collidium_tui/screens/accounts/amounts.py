"""Credits as an operator types them, checked against the server's bounds before anything is sent."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

#: The server takes no larger one.
LARGEST: Final = Decimal(10) ** 9

# Plain digits: 1e9, nan or ٣ are easily misread.
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")


def amount(typed: str) -> Decimal:
    """Credits to be granted, or deducted when negative. Raises ValueError that says what is wrong."""
    if not _NUMBER.fullmatch(typed):
        raise ValueError("is a number like 25, 0.5 or -10")
    delta = Decimal(typed)
    if delta == 0:
        raise ValueError("0 changes nothing")
    if abs(delta) > LARGEST:
        raise ValueError(f"is at most {LARGEST:,} credits")
    if delta != delta.quantize(Decimal("0.001")):
        raise ValueError("has at most three decimal places")
    return delta


def problem_with(typed: str, balance: Decimal) -> str | None:
    """What is wrong with a grant to an account with that balance; None: nothing."""
    try:
        after = balance + amount(typed)
    except ValueError as error:
        return str(error)
    if after < 0:
        return f"takes more than there is: the balance is {balance:,}"
    if after > LARGEST:
        return f"no balance may exceed {LARGEST:,} credits"
    return None
