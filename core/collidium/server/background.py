"""What goes on beside serving: requests are followed, webhooks are delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from collidium import outbox, simulations
from collidium.platform import Platform


@asynccontextmanager
async def background_work(platform: Platform) -> AsyncIterator[None]:
    """Follow requests and deliver webhooks while the context lasts; any number of processes may.

    Raises :class:`~collidium.errors.ConfigurationError` where the runner that was chosen can run nothing.
    """
    platform.runner.check()
    async with (
        outbox.delivering(platform.settings, platform.secrets),
        simulations.following(platform),
    ):
        yield
