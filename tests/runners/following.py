"""Asks a runner again and again until a job is where the test wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from time import monotonic

from collidium.contracts.runner import JobState, JobStatus, Runner

#: Seconds between two polls: each may start a process that asks podman, or a batch system's controller.
PAUSE = 0.1

ENDED = frozenset(state for state in JobState if state.has_ended)


async def reaches(
    runner: Runner, handle: str, states: Collection[JobState] = ENDED, seconds: float = 60
) -> JobStatus:
    """The job's status once it is one of ``states``; fails when it ends otherwise, or after ``seconds``."""
    deadline = monotonic() + seconds
    while (status := await runner.poll(handle)).state not in states:
        assert not status.state.has_ended, status
        assert monotonic() < deadline, status
        await asyncio.sleep(PAUSE)
    return status


async def runs(runner: Runner, handle: str) -> JobStatus:
    """The job's status once it runs."""
    return await reaches(runner, handle, {JobState.RUNNING})
