"""How commands reach the platform: by a client of the server, or on the server's machine."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from collidium.cli.output import json_wanted
from collidium.runtime.interrupts import Importing

if TYPE_CHECKING:
    from collidium.client import Client, Page
    from collidium.hub.client import Hub
    from collidium.platform import Platform
    from collidium.settings import Settings


#: The settings that clients read. Any other setting in the environment is validated with all settings.
CLIENT_SETTINGS = frozenset({"PLATFORM_BACKEND", "PLATFORM_HUB_URL"})


def client(token: str | None = None) -> Client:
    """Return a client of the server. Raises ConfigurationError as :func:`check_environment`."""
    with Importing():
        from collidium.client import Client

    check_environment()
    return Client(token=token)


def check_environment() -> None:
    """Raise ConfigurationError if the environment has unknown or invalid settings."""
    if any_settings():
        from collidium import settings

        settings.load()


def any_settings() -> bool:
    """Whether the environment has a server's setting. Loading the settings takes longer than a call."""
    return any(name.startswith("PLATFORM_") and name not in CLIENT_SETTINGS for name in os.environ)


def all_pages(call: Callable[..., Page[Any]], *args: object) -> Iterator[Any]:
    """Yield the items of all pages of a client's call."""
    cursor = None
    while True:
        page = call(*args, limit=1000, cursor=cursor)
        yield from page.items
        if (cursor := page.next_cursor) is None:
            return


def training_data(
    name: str, hub: str | None, config: str | None, revision: str | None
) -> tuple[str, str, str, str] | None:
    """Return repository, hub, config and revision of the training data of a task, if it has any."""
    with client() as server:
        data, backend = server.task(name).training_data, server.backend
    if data is None:
        return None
    return (
        data.repository,
        hub or data.hub or f"{backend}/hub",
        config or data.config,
        revision or data.revision,
    )


def hub_client(endpoint: str | None = None) -> Hub:
    """Return a client of the hub, by default that of the environment, with the user's token."""
    from collidium.hub.client import Hub
    from collidium.hub.sources import find_hub

    hub = find_hub(endpoint)
    return Hub(hub.endpoint, hub.token or "")


Result = TypeVar("Result")


def on_platform(action: Callable[[Platform], Awaitable[Result]]) -> Result:
    """Run ``action`` with the platform of this machine, and warn of broken plugins."""
    with Importing():
        import asyncio

        from collidium.challenges import tasklist
        from collidium.cli.root import warn_about_failures

    async def run() -> Result:
        async with tasklist.open_platform(quiet_settings()) as platform:
            if not json_wanted():
                warn_about_failures(platform.plugins)
            return await action(platform)

    return asyncio.run(run())


def quiet_settings() -> Settings:
    """Load the settings for a command, which logs only warnings and errors."""
    from collidium import settings
    from collidium.runtime import logs

    loaded = settings.load()
    logs.configure("warning", loaded.log_format)
    return loaded
