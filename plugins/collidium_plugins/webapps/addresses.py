"""Addresses of pages, with what is asked of them."""

from __future__ import annotations

from urllib.parse import urlencode


def with_query(path: str, **asked: object) -> str:
    """The path with what is asked behind it; what is empty or None is left out."""
    query = urlencode({name: value for name, value in asked.items() if value not in ("", None)})
    return f"{path}?{query}" if query else path
