"""Waits until something holds that another process, thread or task brings about.

The one place where tests look again and again; how long they look at most is a bound, not a measurement.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Final

from collidium.testing.processes import Process
from collidium.testing.server import start_process

#: Seconds between two looks.
PAUSE: Final = 0.01


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return once ``condition()`` holds; fails after ``seconds``."""
    deadline = monotonic() + seconds
    pause = Event()
    while not condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        pause.wait(PAUSE)


async def until(condition: Callable[[], bool], seconds: float = 60, pause: float = PAUSE) -> None:
    """The same while the loop's other tasks go on; a look that costs much has a longer ``pause``."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(pause)


async def eventually_async(condition: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """The same for a condition that has to be asked for."""
    deadline = monotonic() + seconds
    while not await condition():
        assert monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(PAUSE)


def start_announced(command: Sequence[str], directory: Path | None = None) -> tuple[Process, str]:
    """Start a program in a session of its own, with the errors of the tests; its first line of output."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as lines, open(2, "wb", closefd=False) as errors:
        with os.fdopen(writing, "wb") as output:
            process = start_process(command, os.environ, directory or Path.cwd(), output, errors)
        return process, lines.readline()
