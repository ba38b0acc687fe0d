"""Validation and comparison of display names, in any script."""

from __future__ import annotations

import unicodedata
from typing import Final

#: Zero-width joiners, which some scripts need. Other format characters are invisible or reverse the text.
_JOINERS: Final = "\u200c\u200d"
#: Invisible characters: joiners, fillers of Korean and Braille, variation selectors.
_BLANK: Final = dict.fromkeys(
    [
        *map(ord, f"{_JOINERS}\u034f\u115f\u1160\u2800\u3164\uffa0"),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)


def normalized(name: str) -> str:
    """Return a name as it is stored: in NFC, stripped."""
    return unicodedata.normalize("NFC", name).strip()


def key(name: str) -> str:
    """Return the key for comparing names: without case, compatibility variants and invisible characters."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().translate(_BLANK).split())


def problem(name: str, longest: int) -> str | None:
    """Return the problem of a name that cannot be shown on a page or in a spreadsheet, else None."""
    if len(name) > longest:
        return f"over {longest} characters"
    if name[:1] in tuple("=+-@") or not all(map(_is_shown, name)):
        return "invisible characters, or = + - @ at the beginning"
    return None


def _is_shown(character: str) -> bool:
    category = unicodedata.category(character)
    return character in _JOINERS or not (category[0] == "C" or category in {"Zl", "Zp"})
