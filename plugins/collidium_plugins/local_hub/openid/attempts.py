"""How often a wrong token may be tried, in one server process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from cachetools import TTLCache

#: In a minute, from one address and from all together.
OF_ONE: Final = 10
OF_ALL: Final = 300
WINDOW_SECONDS: Final = 60
_ADDRESSES: Final = 10_000


class Attempts:
    """Counts what was wrong. Tokens cannot be guessed; this keeps whoever tries from being work."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._of: TTLCache[str, int] = TTLCache[str, int](_ADDRESSES, WINDOW_SECONDS, timer)
        self._all: TTLCache[None, int] = TTLCache[None, int](1, WINDOW_SECONDS, timer)

    def are_too_many(self, address: str) -> bool:
        """Whether the next one from there has to wait for :data:`WINDOW_SECONDS`."""
        return self._of.get(address, 0) >= OF_ONE or self._all.get(None, 0) >= OF_ALL

    def count(self, address: str) -> None:
        """One more was wrong."""
        self._of[address] = self._of.get(address, 0) + 1
        self._all[None] = self._all.get(None, 0) + 1
