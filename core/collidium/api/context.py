"""The platform of the current application, its readiness probes, and the origin of a request."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, TypeVar, cast

from quart import Quart, current_app, request
from tortoise.exceptions import BaseORMException

from collidium import operations
from collidium.database.errors import is_away
from collidium.model_runs import model_runners
from collidium.platform import Platform
from collidium.runtime.logs import message_of

T = TypeVar("T")

_EXTENSION = "platform"
_PROBES = "readiness"

#: Lifetime of a result, and timeout of a check.
FRESH_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
#: Key that is never stored; looking it up checks the storage.
KEY: Final = "readiness"

logger = logging.getLogger(__name__)


class Probe:
    """Checks one component, at most every few seconds.

    While a check hangs no other starts: it may block a thread.
    """

    def __init__(self, part: str, ask: Callable[[], Awaitable[object]]) -> None:
        self._part = part
        self._ask = ask
        self._asking: asyncio.Task[object] | None = None
        self._asked_at = -FRESH_SECONDS
        self._is_available = True

    async def is_available(self) -> bool:
        """Return whether the last check succeeded."""
        if self._asking is None:
            if monotonic() < self._asked_at + FRESH_SECONDS:
                return self._is_available
            self._asking = asyncio.create_task(self._asked())
        asking = self._asking
        done, _ = await asyncio.wait([asking], timeout=PATIENCE_SECONDS)
        if not done:
            logger.warning("%s does not answer", self._part)
            return False
        return self._is_available

    async def _asked(self) -> None:
        try:
            await self._ask()
            self._is_available = True
        except Exception as error:  # of a plugin
            self._is_available = False
            logger.warning("%s is away: %s", self._part, message_of(error))
        finally:
            self._asked_at, self._asking = monotonic(), None


class Probes:
    """Readiness probes of storage and executor, and whether the server is about to stop."""

    def __init__(self, platform: Platform) -> None:
        self.is_stopping = False
        self.storage = Probe("the storage", lambda: platform.storage.exists(KEY))
        self.scoring = Probe("the executor", lambda: platform.executor.check())


async def frozen() -> bool | None:
    """Return whether simulation requests are frozen; None if the database is unavailable."""
    return await _from_database(operations.is_frozen())


async def models_not_run() -> str | None:
    """Return why no process runs models, empty if one does; None if the database is unavailable."""
    return await _from_database(model_runners.why_none())


async def _from_database(asked: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await asked
    except TimeoutError:
        return None
    except Exception as error:
        if not is_away(error) and not isinstance(error, BaseORMException):  # missing table
            raise
        return None


def set_platform(app: Quart, opened: Platform) -> Probes:
    """Set the platform that the application serves; return its readiness probes."""
    app.extensions[_EXTENSION] = opened
    app.extensions[_PROBES] = probes = Probes(opened)
    return probes


def platform() -> Platform:
    """Return the platform of the current application."""
    return cast(Platform, current_app.extensions[_EXTENSION])


def probes() -> Probes:
    """Return the readiness probes of the current application."""
    return cast(Probes, current_app.extensions[_PROBES])


def caller_address(proxies: int) -> str:
    """Return the IP address of the caller, behind that many trusted proxies.

    Callers can forge ``X-Forwarded-For`` except for the entries that trusted proxies append.
    """
    entry = _passed_on("X-Forwarded-For", proxies)
    return (entry and _address(entry)) or request.remote_addr or ""


def caller_scheme(proxies: int) -> str:
    """Return ``http`` or ``https``: the caller's protocol at the outermost trusted proxy."""
    passed = _passed_on("X-Forwarded-Proto", proxies)
    return passed if passed in {"http", "https"} else request.scheme


def _passed_on(header: str, proxies: int) -> str | None:
    passed = ",".join(request.headers.getlist(header)).split(",") if proxies else []
    return passed[-proxies].strip() if len(passed) >= proxies > 0 else None


def _address(entry: str) -> str:
    """Parse the IP address of an entry, which may have brackets and a port; empty if invalid."""
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    try:
        return str(ipaddress.ip_address(entry))
    except ValueError:
        return ""
