"""Ask a runner until a job is where the test wants it, or until it says why not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from collidium.contracts.runner import JobState, JobStatus, Runner, RunnerUnavailable

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


@contextmanager
def unavailable(message: str, *, operators: str) -> Iterator[None]:
    """The block raises RunnerUnavailable: the one pattern is in its message, the other in its cause alone."""
    with pytest.raises(RunnerUnavailable, match=message) as caught:
        yield
    assert re.search(operators, str(caught.value.__cause__))
    assert not re.search(operators, str(caught.value))
