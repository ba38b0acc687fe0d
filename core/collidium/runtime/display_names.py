"""Validation and comparison of display names, in any script."""

from __future__ import annotations

import re
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
#: Not the underscore: it joins letters of one word.
_BETWEEN_WORDS: Final = re.compile("[\\s\\-\u2010-\u2015\u2019.,:;/&+'()]+")


def normalized(name: str) -> str:
    """Return a name as it is stored: in NFC, stripped."""
    return unicodedata.normalize("NFC", name).strip()


def key(name: str) -> str:
    """Return the key for comparing names: without case, compatibility variants and invisible characters."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().translate(_BLANK).split())


def skeletons(name: str) -> frozenset[str]:
    """Return what names that look alike have in common, in any script (Unicode Technical Standard 39).

    One is of the name as it is written, where I looks like l, and one without case.
    """
    import disarm  # not at the top: only names of teams need it

    return frozenset(map(disarm.skeleton_key, (name, key(name))))


def scripts(name: str) -> list[str]:
    """Return the scripts of a name's letters, in English."""
    import disarm

    return sorted(script.name.replace("_", " ").title() for script in disarm.detect_scripts(name))


def mixed_word(name: str) -> str | None:
    """Return the first word whose letters are of several scripts; Japanese counts as one."""
    import disarm

    words = _BETWEEN_WORDS.split(unicodedata.normalize("NFKC", name))
    return next((word for word in words if word and disarm.is_mixed_script(word)), None)


def has_hidden(text: str) -> bool:
    """Whether a text has invisible characters, or such that reverse what follows."""
    return not all(map(_is_shown, text))


def problem(name: str, longest: int) -> str | None:
    """Return the problem of a name that cannot be shown on a page or in a spreadsheet, else None."""
    if len(name) > longest:
        return f"over {longest} characters"
    if name[:1] in tuple("=+-@") or has_hidden(name):
        return "invisible characters, or = + - @ at the beginning"
    return None


def _is_shown(character: str) -> bool:
    category = unicodedata.category(character)
    return character in _JOINERS or not (category[0] == "C" or category in {"Zl", "Zp"})
