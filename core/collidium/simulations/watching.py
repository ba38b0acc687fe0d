"""Watching a request while it goes on: its state, and how far its job is."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from cachetools import TTLCache
from msgspec.structs import replace

from collidium import records
from collidium.contracts.runner import RunnerError
from collidium.errors import TooManyRequests
from collidium.runtime.shared_calls import SharedCalls
from collidium.simulations import transitions
from collidium.simulations.models import SimulationRequest, State
from collidium.simulations.requests import find, visible

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Seconds between two looks at a watched request, and for how long others that watch it share one. Each look
#: lets the follower poll the job, and a later one finds what is new: within two seconds
#: (``2 * (LOOK_SECONDS + SHARED_SECONDS) + follower.IDLE_SECONDS``, and what the calls take).
LOOK_SECONDS: Final = 0.5
SHARED_SECONDS: Final = 0.2
#: Streams of one account that a process serves at once, and how long one lasts before its client calls again.
STREAMS: Final = 8
STREAM_SECONDS: Final = 300.0
#: Requests whose last look is kept, and the time that a runner has to report progress.
_KEPT: Final = 1000
_PROGRESS_SECONDS: Final = 1.0


async def find_with_progress(
    platform: Platform, request_id: str, account_id: int | None = None
) -> records.SimulationRequest:
    """As :func:`find`, with what the runner reports of a running job."""
    row = await visible(request_id, account_id)
    runner = platform.runners.things.get(row.runner)
    if runner is not None and runner.polled_when_watched:
        await transitions.poll_soon(row)
    return replace(await find(request_id, account_id), progress=await _progress(platform, row))


async def _progress(platform: Platform, row: SimulationRequest) -> records.JobProgress | None:
    if row.state != State.RUNNING or not row.handle:
        return None
    try:
        async with asyncio.timeout(_PROGRESS_SECONDS):
            found = await platform.runners.get(row.runner).progress(row.handle)
    except (RunnerError, TimeoutError):
        return None
    except Exception:  # a third-party runner; the request is shown all the same
        logger.exception("runner %s failed to report progress", row.runner)
        return None
    return None if found is None else records.JobProgress.of(found)


class Watching:
    """The streams of one process. No stream holds a connection of the database between two looks."""

    def __init__(self) -> None:
        self._looks: SharedCalls[str, records.SimulationRequest] = SharedCalls(
            TTLCache(_KEPT, SHARED_SECONDS)
        )
        self._streams: Counter[int] = Counter()
        #: Set when the server stops: streams end.
        self.stopping = asyncio.Event()

    async def stream(self, platform: Platform, request_id: str, account_id: int) -> AsyncIterator[bytes]:
        """Server-sent events: the request as JSON whenever it has changed, until it has ended.

        Raises NotFound, and TooManyRequests beyond STREAMS of an account.
        """
        await visible(request_id, account_id)
        if self._streams[account_id] >= STREAMS:
            raise TooManyRequests(f"at most {STREAMS} streams at once; close one of them", retry_after=5)
        return self._events(platform, request_id, account_id)

    async def _events(self, platform: Platform, request_id: str, account_id: int) -> AsyncIterator[bytes]:
        self._streams[account_id] += 1
        try:
            last, until = b"", monotonic() + STREAM_SECONDS
            # Many may have been let in at once, before any of them began.
            while self._streams[account_id] <= STREAMS and monotonic() < until:
                found = await self._looks.run(request_id, partial(find_with_progress, platform, request_id))
                now = records.encode(found)
                # A comment shows a client that has gone.
                yield b":\n\n" if now == last else b"data: " + now + b"\n\n"
                last = now
                if found.has_ended or self.stopping.is_set():
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self.stopping.wait()
        except Exception as error:
            # Most likely the database is away; the client calls again.
            logger.warning("a stream of request %s ended: %s", request_id, error)
        finally:
            self._streams[account_id] -= 1
            if not self._streams[account_id]:
                del self._streams[account_id]
