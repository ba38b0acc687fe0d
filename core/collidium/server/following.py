"""A process that follows requests and delivers webhooks, and serves nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from collidium.platform import Platform
from collidium.runtime import logs
from collidium.server.background import background_work
from collidium.server.worker import stop_requested, tell_of_plugins
from collidium.settings import Settings


def follow(settings: Settings, announce: Callable[[], None]) -> None:
    """Work until SIGTERM or SIGINT; ``announce`` is called when it has begun.

    Raises ConfigurationError when it cannot start.
    """
    logs.configure(settings.log_level, settings.log_format)
    tell_of_plugins()
    asyncio.run(_follow(settings, announce))


async def _follow(settings: Settings, announce: Callable[[], None]) -> None:
    async with Platform.open(settings) as platform, background_work(platform):
        announce()
        await stop_requested()
