"""Serves the platform from this machine: one process, or several that share a port."""

from __future__ import annotations

import asyncio
import logging

import click

from collidium import logs
from collidium.cli.server.admin_token import ensure_admin_token
from collidium.cli.server.listener import listen
from collidium.cli.server.supervisor import supervise
from collidium.cli.server.worker import serve_here
from collidium.platform import Platform
from collidium.settings import Settings

logger = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Serve until told to stop. Raises ConfigurationError when it cannot start."""
    logs.configure(settings.log_level, settings.log_format)
    settings = ensure_admin_token(settings)
    with listen(settings.host, settings.port) as listener:
        # The real port: the local hub's address is made from it.
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        asyncio.run(_rehearse(settings))

        def announce() -> None:
            click.echo(f"Collidium is at {settings.base_url}")

        if settings.workers == 1:
            serve_here(settings, listener, announce)
        else:
            supervise(settings, listener, announce)


async def _rehearse(settings: Settings) -> None:
    """Open the platform once: what is wrong shows here, plainly, and the schema is brought up only once."""
    async with Platform.open(settings) as platform:
        for failure in platform.plugins.failures:
            logger.warning("%s", failure)
