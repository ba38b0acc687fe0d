"""Serves the platform from this machine: one process, or several that share a port."""

from __future__ import annotations

import asyncio
import resource
from contextlib import ExitStack, suppress

import click

from collidium.platform import Platform
from collidium.runtime import logs
from collidium.server.admin_token import ensure_admin_token
from collidium.server.listener import listeners_of
from collidium.server.supervisor import supervise
from collidium.server.worker import serve_here
from collidium.settings import Settings


def run(settings: Settings) -> None:
    """Serve until told to stop. Raises ConfigurationError when it cannot start."""
    logs.configure(settings.log_level, settings.log_format)
    settings = ensure_admin_token(settings)
    _allow_many_connections()
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in listeners_of(settings)]
        # The real ports: the local hub's addresses are made from them.
        port, *hub_port = [listener.getsockname()[1] for listener in listeners]
        settings = settings.model_copy(update={"port": port, "hub_port": hub_port[0] if hub_port else 0})

        def announce() -> None:
            hub = f"\nIts hub is at {settings.hub_root_url}" if settings.hub_root_url else ""
            click.echo(f"Collidium is at {settings.base_url}{hub}")

        if settings.workers == 1:
            serve_here(settings, listeners, announce)
        else:
            asyncio.run(_rehearse(settings))
            supervise(settings, listeners, announce)


def _allow_many_connections() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _rehearse(settings: Settings) -> None:
    """Open the platform before any worker does: what is wrong, or the schema lacks, is seen to once."""
    async with Platform.open(settings) as platform:
        if settings.follow_requests:
            platform.runner.check()
