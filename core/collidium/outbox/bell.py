"""Wakes those of this process who deliver; other processes look by themselves now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_listeners: Final[set[asyncio.Event]] = set()


@contextmanager
def listening() -> Iterator[asyncio.Event]:
    """An event that every :func:`ring` on this loop sets; whoever listens clears it."""
    heard = asyncio.Event()
    _listeners.add(heard)
    try:
        yield heard
    finally:
        _listeners.discard(heard)


def ring() -> None:
    """Something was announced, and its transaction has committed."""
    for heard in _listeners:
        heard.set()
