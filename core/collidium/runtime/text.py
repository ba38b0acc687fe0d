"""What other programs say, fit for a log and a timeline."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 200


def one_line(told: str) -> str:
    """All of it in one line, without control characters, cut short."""
    words = " ".join("".join(c if c.isprintable() else " " for c in told).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def last_line(told: str) -> str:
    """The last line that says anything: where programs tell what went wrong."""
    lines = [line for line in told.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "no reason given"
