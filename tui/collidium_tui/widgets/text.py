"""Untrusted text on the screen: never taken for markup, and without control characters."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from rich.text import Text
from textual.content import Content

from collidium_tui.widgets.times import Times

#: What may be typed or pasted into a field: no control character, which the field would hand to the terminal.
TYPED: Final = r"[^\x00-\x1f\x7f-\x9f]*"


def plain(text: str, *, single_line: bool = False) -> Content:
    """The text as it is, safe for a terminal."""
    return Content(printable(text, single_line=single_line))


def printable(text: str, *, single_line: bool = False) -> str:
    """The text without characters that would move the cursor or turn the line round."""
    kept = {" "} if single_line else {" ", "\n"}
    return "".join(
        character if character in kept or unicodedata.category(character)[0] not in "CZ" else " "
        for character in text
    )


def cell(value: Any, times: Times) -> Text:
    """A value as a cell of a table: numbers without needless zeros, times in the zone that is shown."""
    return Text(printable(formatted(value, times), single_line=True), no_wrap=True, overflow="ellipsis")


def counted(number: int, things: str) -> str:
    """How many there are of what is given in the plural: ``1 request``, ``2 audit entries``."""
    if number == 1:
        things = re.sub("s$", "", re.sub("ies$", "ys", things))
    return f"{number:,} {things}"


def formatted(value: Any, times: Times) -> str:
    """A value in words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return times.show(value)
    if isinstance(value, Decimal):
        return f"{value.normalize():,f}" if value else "0"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value)
