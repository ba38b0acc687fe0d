"""Watching a request while it goes on: its state, and how far its job is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from collidium import records
from collidium.contracts.runner import RunnerError
from collidium.simulations import transitions
from collidium.simulations.models import SimulationRequest, State
from collidium.simulations.requests import find, visible

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: The time that a runner has to report progress.
_PROGRESS_SECONDS: Final = 1.0


async def watch(platform: Platform, request_id: str, account_id: int) -> AsyncIterator[bytes]:
    """Server-sent events of a request; raises NotFound, and TooManyRequests as ``Watching.stream``."""
    await visible(request_id, account_id)
    look = partial(find_with_progress, platform, request_id)
    return platform.watching.stream(request_id, account_id, look)


async def find_with_progress(
    platform: Platform, request_id: str, account_id: int | None = None
) -> records.SimulationRequest:
    """As :func:`find`, with what the runner reports of a running job."""
    row = await visible(request_id, account_id)
    runner = platform.runners.things.get(row.runner)
    if runner is not None and runner.watched_poll_seconds is not None:
        await transitions.poll_soon(row, runner.watched_poll_seconds)
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
