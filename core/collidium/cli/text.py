"""Text for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text without control characters: what comes from a server or a file must not drive a terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
