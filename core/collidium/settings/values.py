"""Types of settings that are written as lists or tables, and helpers for URLs and secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pydantic import BeforeValidator
from pydantic_settings import NoDecode

MEBIBYTE: Final = 1024**2
GIBIBYTE: Final = 1024**3

#: Values that need no quotes in a line ``#SBATCH``. Empty: the batch system's default.
PLAIN: Final = r"^([A-Za-z0-9_][A-Za-z0-9_.,:@/&|*+-]*)?$"

#: Shown in place of a secret.
MASK: Final = "********"


def _split_list(value: object) -> object:
    """Split a list separated by commas; return other values unchanged."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _split_table(value: object) -> object:
    """Split a table ``name=number,...``; return other values unchanged."""
    if not isinstance(value, str):
        return value
    table: dict[str, str] = {}
    for part in value.split(","):
        name, separator, number = map(str.strip, part.partition("="))
        if not separator or not name or name in table:
            raise ValueError(f"write name=number,name=number, each name once, not {part.strip()!r}")
        table[name] = number
    return table


#: For a tuple that is written as ``one,two,three``.
COMMA_SEPARATED: Final = NoDecode, BeforeValidator(_split_list)
CommaList = Annotated[tuple[str, ...], *COMMA_SEPARATED]
#: Written as ``one=1,two=2.5``.
NumberByName = Annotated[dict[str, float], NoDecode, BeforeValidator(_split_table)]


def as_written(value: object) -> object:
    """Format a list or table as written in the environment; return other values unchanged."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={number:g}" for name, number in value.items())
    return value


def without_password(url: str, text: str | None = None) -> str:
    """Mask the password of a URL in a text, by default in the URL itself.

    In a web address without a password, the user name is masked, because it may be a token. A secret is
    masked where it is a whole value: in a URL, after ``=`` or between quotes. A short one may be a part of
    other words.
    """
    text = url if text is None else text
    try:
        parts = urlsplit(url)
        token = parts.username if parts.scheme in {"http", "https"} else None
        secrets = {parts.password or token, *parse_qs(parts.query).get("password", [])}
    except ValueError:
        return text.replace(url, MASK)
    for secret in filter(None, secrets):
        for written in {secret, quote(secret), quote(secret, safe=""), unquote(secret)}:
            value = rf"(?<=[:/=\"'`]){re.escape(written)}(?![A-Za-z0-9_%~-])"
            text = re.sub(value, MASK, text)
    return text


def sqlite_path(url: str) -> Path | None:
    """Return the file of ``sqlite:///relative`` or ``sqlite:////absolute``; None for other URLs."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path and path != url else None
