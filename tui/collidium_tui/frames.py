"""Frames in ASCII, where the locale has no characters to draw them."""

from __future__ import annotations

import codecs
import sys
import unicodedata
from typing import Final

_HANDLER: Final = "collidium_tui.ascii"


def draw_in_ascii_if_needed() -> None:
    """Replace characters that the locale's encoding lacks by similar ones; otherwise they are escaped."""
    codecs.register_error(_HANDLER, _replaced)
    # Textual writes to it, and Python escapes what it cannot encode there.
    if sys.__stderr__ is not None and hasattr(sys.__stderr__, "reconfigure"):
        sys.__stderr__.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_similar, error.object[error.start : error.end])), error.end


def _similar(character: str) -> str:
    """ASCII of the same width."""
    name = unicodedata.name(character, "")
    if name.startswith("BOX DRAWINGS"):
        return "-" if "VERTICAL" not in name and "HORIZONTAL" in name else "|" if _is_upright(name) else "+"
    if unicodedata.combining(character):
        return ""
    mark = "#" if "BLOCK" in name else "*" if "BULLET" in name else "?"
    return mark * (2 if unicodedata.east_asian_width(character) in "WF" else 1)


def _is_upright(name: str) -> bool:
    return "VERTICAL" in name and not any(word in name for word in ("HORIZONTAL", "LEFT", "RIGHT"))
