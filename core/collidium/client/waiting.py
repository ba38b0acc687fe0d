"""How to wait for an end: pauses that grow, and patience with a server that is away for a while."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, Generic, TypeVar

from collidium import errors
from collidium.records import Evaluation, Rescoring, SimulationRequest

Ending = TypeVar("Ending", SimulationRequest, Evaluation, Rescoring)
#: Called with the request when it is first seen, and whenever something of it has changed.
OnChange = Callable[[Ending], None]

#: Seconds between two looks: the first, how fast it grows, the longest.
FIRST_PAUSE: Final = 0.5
GROWTH: Final = 1.25
LONGEST_PAUSE: Final = 30.0

#: How long in a row the server may be away.
PATIENCE_SECONDS: Final = 300.0
#: What passes: a restart, a database or a hub that is away, a proxy without its server.
PASSING: Final = (errors.Unavailable, errors.Unreachable, errors.UpstreamError, errors.TooManyRequests)


class Waiting(Generic[Ending]):
    """What was seen so far, and when to look again; it neither looks nor sleeps itself."""

    def __init__(
        self,
        timeout: float | None,
        on_change: OnChange[Ending] | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._clock = clock
        self._deadline = None if timeout is None else clock() + timeout
        self._on_change: OnChange[Ending] | None = on_change
        self._seen: Ending | None = None
        self._pause = FIRST_PAUSE
        self._trouble_since: float | None = None

    def has_ended(self, request: Ending) -> bool:
        """Take in what the server answered; whether there is nothing more to wait for."""
        self._trouble_since = None
        if request != self._seen:
            self._seen = request
            if self._on_change is not None:
                self._on_change(request)
        return request.has_ended

    def pause(self) -> float:
        """Seconds until the next look. Raises TimeoutError when there is no time left for one."""
        pause = self._pause
        self._pause = min(self._pause * GROWTH, LONGEST_PAUSE)
        return self._within_time(pause)

    def pause_after(self, trouble: errors.CollidiumError) -> float:
        """Seconds until the next look, after one that failed. Raises what failed when it lasts too long."""
        moment = self._clock()
        if self._trouble_since is None:
            self._trouble_since = moment
        if moment - self._trouble_since > PATIENCE_SECONDS:
            raise trouble
        retry_after = trouble.headers.get("Retry-After", "")
        wanted = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else 0.0
        return self._within_time(max(self.pause(), min(wanted, LONGEST_PAUSE)))

    def _within_time(self, pause: float) -> float:
        if self._deadline is None:
            return pause
        left = self._deadline - self._clock()
        if left <= 0:
            state = self._seen.state if self._seen else "not seen"
            raise TimeoutError(f"the request has not ended in time: it is {state}")
        return min(pause, left)
