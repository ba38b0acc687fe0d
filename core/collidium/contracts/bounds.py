"""The lowest and the highest value of a column, as people read them."""

from __future__ import annotations


def in_digits(bound: float) -> str:
    """An integer with all of its digits, so that it can be compared with what was submitted."""
    return str(bound) if isinstance(bound, int) else f"{bound:.15g}"
