"""Tells plugins what happened, each in a thread of its own: none delays a request, or another plugin."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from time import monotonic
from typing import Final

logger = logging.getLogger(__name__)

#: News that may wait for one plugin; more than a healthy one ever lets wait.
MOST_WAITING: Final = 1000


class Observers:
    """The threads, by plugin; started when there is something to tell."""

    def __init__(self) -> None:
        self._observers: dict[str, _Observer] = {}

    def tell(self, plugin: str, news: Callable[[], object]) -> None:
        """Let ``news`` run soon; what it raises is logged, and so is news that nobody has time for."""
        if plugin not in self._observers:
            self._observers[plugin] = _Observer(plugin)
        self._observers[plugin].tell(news)

    def finish(self, seconds: float) -> None:
        """Wait until all has been told, for so many seconds at most; what has no end by then is left."""
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
        self._news: Queue[Callable[[], object] | None] = Queue(MOST_WAITING)
        self._thread = Thread(target=self._run, name=f"observer of {plugin}", daemon=True)
        self._thread.start()

    def tell(self, news: Callable[[], object]) -> None:
        try:
            self._news.put_nowait(news)
        except Full:
            logger.error("plugin %s is too slow an observer; it misses something", self._plugin)

    def stop(self, deadline: float) -> None:
        with suppress(Full):  # told below: the thread lives on
            self._news.put(None, timeout=max(0.0, deadline - monotonic()))
        self._thread.join(max(0.0, deadline - monotonic()))
        if self._thread.is_alive():
            logger.error("plugin %s still observes something and is left behind", self._plugin)

    def _run(self) -> None:
        for news in iter(self._news.get, None):
            try:
                news()
            except (Exception, SystemExit):
                # A stranger's observer must not undo what has already been committed, nor miss what follows.
                logger.exception("plugin %s failed as an observer", self._plugin)
