"""How many uploads, evaluations and checks of links of one account go on at once in this server process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from collidium.errors import TooManyRequests


class InFlight:
    """Counts what each account has under way; one per app."""

    def __init__(self) -> None:
        self._under_way: Counter[int | str] = Counter()

    @contextmanager
    def one_more(self, account: int | str, most: int) -> Iterator[None]:
        """Count one while the context lasts; raises TooManyRequests when the account has ``most`` already."""
        if self._under_way[account] >= most:
            raise TooManyRequests(
                f"{most} submissions of this account are being scored or linked; wait for one to end",
                retry_after=1,
            )
        self._under_way[account] += 1
        try:
            yield
        finally:
            self._under_way[account] -= 1
            if not self._under_way[account]:
                del self._under_way[account]
