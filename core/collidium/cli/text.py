"""Text for a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TextIO


def printable(text: str) -> str:
    """The text without control characters: what comes from a server or a file must not drive a terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def short_reference(reference: str) -> str:
    """A ledger entry's reference with its long ids shortened; ``--json`` has them whole."""
    return re.sub(r"\b([0-9a-f]{8})[0-9a-f]{24}\b", r"\1", reference)


def width_of(stream: TextIO) -> int | None:
    """Columns of the terminal behind the stream; None where nobody looks and nothing needs to fit."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrapped(text: str, width: int | None, *, first: str = "", rest: str = "") -> str:
    """One paragraph in lines of at most ``width`` columns, broken between words only.

    ``first`` stands before the first line and ``rest`` before each other one. A word that is longer than a
    line stays whole: a name that is cut cannot be copied.
    """
    if width is None:
        return first + text
    lines = textwrap.wrap(
        text,
        max(width, len(rest) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) or first.rstrip()
