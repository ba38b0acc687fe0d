"""Notifies plugins of events, each in a thread of its own: none delays a request, or another plugin."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from time import monotonic
from typing import Final

logger = logging.getLogger(__name__)

#: Events that may wait for one plugin; more than a healthy one ever lets wait.
MAX_WAITING: Final = 1000


class Observers:
    """The threads, by plugin; started with the first event."""

    def __init__(self) -> None:
        self._observers: dict[str, _Observer] = {}

    def notify(self, plugin: str, event: Callable[[], object]) -> None:
        """Run ``event`` soon; what it raises is logged, and so is an event that there is no time for."""
        if plugin not in self._observers:
            self._observers[plugin] = _Observer(plugin)
        self._observers[plugin].notify(event)

    def finish(self, seconds: float) -> None:
        """Wait for all events, for at most ``seconds``; what has not ended by then is left."""
        deadline = monotonic() + seconds
        observers = list(self._observers.values())
        self._observers.clear()
        for observer in observers:
            observer.stop(deadline)


class _Observer:
    """One plugin's thread: a daemon, as a plugin that never returns must not keep the process alive.

    asyncio's own threads would: the end of the loop waits for each of them.
    """

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._events: Queue[Callable[[], object] | None] = Queue(MAX_WAITING)
        self._thread = Thread(target=self._run, name=f"observer of {plugin}", daemon=True)
        self._thread.start()

    def notify(self, event: Callable[[], object]) -> None:
        try:
            self._events.put_nowait(event)
        except Full:
            logger.error("plugin %s is too slow an observer; it misses something", self._plugin)

    def stop(self, deadline: float) -> None:
        with suppress(Full):  # logged below: the thread lives on
            self._events.put(None, timeout=max(0.0, deadline - monotonic()))
        self._thread.join(max(0.0, deadline - monotonic()))
        if self._thread.is_alive():
            logger.error("plugin %s still observes something and is left behind", self._plugin)

    def _run(self) -> None:
        for event in iter(self._events.get, None):
            try:
                event()
            except BaseException:
                # A third-party observer must not undo what has already been committed, nor miss what follows.
                logger.exception("plugin %s failed as an observer", self._plugin)
