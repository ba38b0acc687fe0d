"""Blocking work next to an event loop, in threads that no one has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from collidium.errors import Unavailable

Result = TypeVar("Result")


async def in_thread(work: Callable[[], Result], name: str) -> Result:
    """``work()`` in a daemon thread of its own, called ``collidium-`` and ``name``.

    Unlike with asyncio.to_thread, a cancelled caller leaves at once and the loop's end does not wait for the
    work: an upload may be waiting an hour for its score, a look-up for a name server that is away. Raises
    Unavailable where the system has no more threads.
    """
    future: Future[Result] = Future()
    # From here on it takes a result even when no caller waits any more.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # whatever it is, it belongs to who waits
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        threading.Thread(target=run, name=f"collidium-{name}", daemon=True).start()
    except RuntimeError as error:
        raise Unavailable(f"the system has no more threads for this ({name}); try again later") from error
    return await asyncio.wrap_future(future)
