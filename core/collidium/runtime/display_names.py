"""Names that people choose, in any script, as they are shown to others."""

from __future__ import annotations

import unicodedata
from typing import Final

#: Joiners, which names of some scripts need; all others of their category are invisible, or turn the text.
_JOINERS: Final = "\u200c\u200d"


def normalized(name: str) -> str:
    """Return a name as it is stored: Unicode's NFC, no space around it."""
    return unicodedata.normalize("NFC", name).strip()


def problem(name: str, longest: int) -> str | None:
    """Return what is wrong with a name; None where it can be shown, also in a spreadsheet."""
    if len(name) > longest:
        return f"over {longest} characters"
    if name[:1] in tuple("=+-@") or not all(map(_is_shown, name)):
        return "characters that are not shown, or = + - @ at the beginning"
    return None


def _is_shown(character: str) -> bool:
    category = unicodedata.category(character)
    return character in _JOINERS or not (category[0] == "C" or category in {"Zl", "Zp"})
