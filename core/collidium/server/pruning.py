"""Deletes what is over and older than ``PLATFORM_RETENTION_DAYS``, every hour, from every server process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from tortoise.timezone import now

from collidium import outbox
from collidium.files import data_directory
from collidium.settings import Settings

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 3600.0


@asynccontextmanager
async def pruning(settings: Settings) -> AsyncIterator[None]:
    """Prune every hour while the context lasts."""
    task = asyncio.create_task(_prune_hourly(settings))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _prune_hourly(settings: Settings) -> None:
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        try:
            await prune(settings, now())
        except Exception:  # of any kind: the next hour may go better
            logger.warning("old records cannot be deleted now", exc_info=True)


async def prune(settings: Settings, moment: datetime) -> None:
    """Delete what is over and, at a moment, as old as the settings say."""
    before = moment - timedelta(days=settings.retention_days)
    await outbox.prune(before)
    await asyncio.to_thread(data_directory.sweep_old, settings, before.timestamp())
