"""Text of other programs, for logs and timelines."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 200


def single_line(text: str) -> str:
    """Return the text in a single line, without control characters, shortened."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def message_of(error: BaseException) -> str:
    """Return the error's message, whatever a plugin's class makes of it."""
    try:
        return str(error)
    except BaseException:
        return "(it has no readable message)"


def last_line(text: str) -> str:
    """Return the last line that is not empty, where programs report what went wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    return single_line(lines[-1]) if lines else "no reason given"
