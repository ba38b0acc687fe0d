"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow by ``factor`` up to ``longest``, each drawn from the upper half of its span."""

    first: timedelta = timedelta(seconds=1)
    factor: float = 2
    longest: timedelta = timedelta(minutes=5)

    def pause(self, attempts: int) -> timedelta:
        """The wait after so many failures in a row, at least one; with jitter, so that none march in step."""
        # The exponent is bounded before it is used: attempts may go on for days.
        span = min(self.first * self.factor ** min(attempts - 1, 40), self.longest)
        return span * random.uniform(0.5, 1)  # noqa: S311 -- nothing to guess
