"""Kinds of values that settings have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pydantic_settings import NoDecode

MEBIBYTE: Final = 1024**2
GIBIBYTE: Final = 1024**3

#: What may stand in a line ``#SBATCH``, which cannot be quoted; nothing leaves it to the batch system.
PLAIN: Final = r"^([A-Za-z0-9_][A-Za-z0-9_.,:@/&|*+-]*)?$"

#: What is shown in place of a secret.
MASK: Final = "********"

#: Written ``one,two,three``.
CommaList = Annotated[tuple[str, ...], NoDecode]
#: Written ``one=1,two=2.5``.
NumberByName = Annotated[dict[str, float], NoDecode]


def words(value: object) -> object:
    """The parts of a list separated by commas; anything but text is left as it is."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def numbers_by_name(value: object) -> object:
    """A table ``name=number,...`` as a dict of text; anything but text is left as it is."""
    if not isinstance(value, str):
        return value
    table: dict[str, str] = {}
    for part in value.split(","):
        name, separator, number = (piece.strip() for piece in part.partition("="))
        if not separator or not name or name in table:
            raise ValueError(f"write name=number,name=number, each name once, not {part.strip()!r}")
        table[name] = number
    return table


def as_written(value: object) -> object:
    """A list or table as one writes it in the environment; anything else is left as it is."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={number:g}" for name, number in value.items())
    return value


def without_password(url: str, text: str | None = None) -> str:
    """A text, by default the URL itself, with the password masked that the URL has in any part.

    Of a web address that has no password, the user name is taken for one: tokens are written so.
    """
    text = url if text is None else text
    try:
        parts = urlsplit(url)
        token = parts.username if parts.scheme in {"http", "https"} else None
        secrets = {parts.password or token, *parse_qs(parts.query).get("password", [])}
    except ValueError:
        return text.replace(url, MASK)
    for secret in filter(None, secrets):
        for written in (secret, quote(secret), unquote(secret)):
            text = text.replace(written, MASK)
    return text


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite URL (``sqlite:///relative`` or ``sqlite:////absolute``); None for another kind."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path and path != url else None
