"""What a command works with: a client of the server, or the platform of this machine."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from collidium.runtime.interrupts import Importing

if TYPE_CHECKING:
    from collidium.client import Client
    from collidium.platform import Platform
    from collidium.settings import Settings


#: The settings that clients read; with any other one, all settings are validated.
OF_CLIENTS = frozenset({"PLATFORM_BACKEND", "PLATFORM_HUB_URL"})


def client(token: str | None = None) -> Client:
    """A client; raises ConfigurationError when the environment has settings that do not exist."""
    with Importing():
        from collidium.client import Client

    check_environment()
    return Client(token=token)


def check_environment() -> None:
    """Raises ConfigurationError when the environment has settings that do not exist."""
    if any_settings():
        from collidium import settings

        settings.load()


def any_settings() -> bool:
    """Whether the environment has a setting that is not a client's; reading all takes longer than a call."""
    return any(name.startswith("PLATFORM_") and name not in OF_CLIENTS for name in os.environ)


Result = TypeVar("Result")


def on_platform(action: Callable[[Platform], Awaitable[Result]]) -> Result:
    """Run ``action`` on the opened platform; warn of broken plugins."""
    with Importing():
        import asyncio

        from collidium.cli.root import warn_of
        from collidium.platform import Platform

    as_json = click.get_current_context().find_root().obj.as_json

    async def run() -> Result:
        async with Platform.open(quiet_settings()) as platform:
            if not as_json:
                warn_of(platform.plugins)
            return await action(platform)

    return asyncio.run(run())


def quiet_settings() -> Settings:
    """The settings; a command logs only warnings and errors."""
    from collidium import settings
    from collidium.runtime import logs

    loaded = settings.load()
    logs.configure("warning", loaded.log_format)
    return loaded
