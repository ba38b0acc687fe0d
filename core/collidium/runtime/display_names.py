"""Names that people choose, in any script, as they are shown to others."""

from __future__ import annotations

import unicodedata
from typing import Final

#: Joiners, which names of some scripts need; all others of their category are invisible, or turn the text.
_JOINERS: Final = "\u200c\u200d"
#: What shows nothing of its own: joiners, fillers of Korean and Braille, selectors of variants.
_BLANK: Final = dict.fromkeys(
    [
        *map(ord, f"{_JOINERS}\u034f\u115f\u1160\u2800\u3164\uffa0"),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)


def normalized(name: str) -> str:
    """Return a name as it is stored: Unicode's NFC, no space around it."""
    return unicodedata.normalize("NFC", name).strip()


def key(name: str) -> str:
    """Return what names are compared by: without case, variants of characters, and what shows nothing."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().translate(_BLANK).split())


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
