"""Waits until something holds that another process, thread or task brings about.

The one place where tests look again and again; how long they look at most is a bound, not a measurement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from threading import Event
from time import monotonic
from typing import Final

#: Seconds between two looks.
PAUSE: Final = 0.01


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return once ``condition()`` holds; fails after ``seconds``."""
    deadline = monotonic() + seconds
    pause = Event()
    while not condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        pause.wait(PAUSE)


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """The same while the loop's other tasks go on."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(PAUSE)


async def eventually_async(condition: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """The same for a condition that has to be asked for."""
    deadline = monotonic() + seconds
    while not await condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(PAUSE)
