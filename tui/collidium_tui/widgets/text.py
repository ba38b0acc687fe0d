"""Formats values, times and untrusted text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.content import Content

from collidium.presentation.quantities import value_text

#: What can be typed or pasted into a field: no control characters, which the terminal would interpret.
TYPED: Final = r"[^\x00-\x1f\x7f-\x9f]*"


def plain(text: str, *, single_line: bool = False) -> Content:
    """Return untrusted text as content without markup or control characters."""
    return Content(printable(text, single_line=single_line))


def printable(text: str, *, single_line: bool = False) -> str:
    """Replace control, format and separator characters by spaces."""
    kept = {" "} if single_line else {" ", "\n"}
    return "".join(
        character if character in kept or unicodedata.category(character)[0] not in "CZ" else " "
        for character in text
    )


def cell(value: Any, times: Times) -> Text:
    """Format a value as a cell of a table."""
    return Text(printable(formatted(value, times), single_line=True), no_wrap=True, overflow="ellipsis")


def shortened(text: str, width: int) -> str:
    """Shorten a text to ``width`` cells in its middle, because long names often differ at their ends."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{set_cell_size(text, width - 1 - tail)}…{set_cell_size(text[::-1], tail)[::-1]}"


def counted(number: int, things: str) -> str:
    """Format a number of ``things``, given in the plural: ``1 request``, ``2 audit entries``."""
    if number == 1:
        things = re.sub("s$", "", re.sub("ies$", "ys", things))
    return f"{number:,} {things}"


def formatted(value: Any, times: Times) -> str:
    """Format a value by its type."""
    if value is None or value == "":
        return ""
    if isinstance(value, datetime):
        return times.show(value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    return value_text(value)


def _now() -> datetime:
    return datetime.now(UTC)


class Times:
    """Formats times in UTC or in the local zone, by default the machine's; ``now`` is the clock."""

    def __init__(
        self, now: Callable[[], datetime] = _now, zone: tzinfo | None = None, utc: bool = False
    ) -> None:
        self.now = now
        self.utc = utc
        self._zone = zone

    def show(self, at: datetime | None) -> str:
        """Format date and time to the second; empty for None."""
        return "" if at is None else f"{self._here(at):%Y-%m-%d %H:%M:%S}"

    def time(self, at: datetime) -> str:
        """Format the time of day."""
        return f"{self._here(at):%H:%M:%S}"

    def brief(self, at: datetime) -> str:
        """Format for narrow columns: the time of day, preceded by month and day unless it is today."""
        here = self._here(at)
        today = here.date() == self._here(self.now()).date()
        return f"{here:%H:%M:%S}" if today else f"{here:%m-%d %H:%M}"

    def read(self, typed: str) -> datetime:
        """Parse a time, by default in the zone that is shown. Raises ValueError with the reason."""
        try:
            at = datetime.fromisoformat(typed.strip())
        except ValueError:
            raise ValueError("must be a date and time like 2026-01-31 17:05") from None
        # Other years are typing errors, and could overflow in another zone.
        if not 2000 <= at.year < 2100:
            raise ValueError("must be a time in this century")
        if at.tzinfo is None and (zone := UTC if self.utc else self._zone):
            at = at.replace(tzinfo=zone)
        return at.astimezone(UTC)

    @property
    def zone(self) -> str:
        """The name of the zone."""
        return self._here(self.now()).tzname() or "local time"

    def _here(self, at: datetime) -> datetime:
        return at.astimezone(UTC if self.utc else self._zone)


def duration(length: timedelta) -> str:
    """Format in the largest unit that gives at least 2: ``12 s``, ``3 min``, ``5 h``, ``2 d``."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
