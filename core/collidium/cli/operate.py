"""Runs an operator's command on the platform of this machine: its settings, its database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.settings import Settings

Result = TypeVar("Result")


def on_platform(work: Callable[[Platform], Awaitable[Result]]) -> Result:
    """``work`` on the opened platform; broken plugins are named on standard error."""
    from collidium.cli.extensions import warn_of
    from collidium.platform import Platform

    as_json = click.get_current_context().find_root().obj.as_json

    async def run() -> Result:
        async with Platform.open(quiet_settings()) as platform:
            if not as_json:
                warn_of(platform.plugins)
            return await work(platform)

    return asyncio.run(run())


def quiet_settings() -> Settings:
    """The settings; a command logs only what went wrong."""
    from collidium import settings
    from collidium.runtime import logs

    loaded = settings.load()
    logs.configure("warning", loaded.log_format)
    return loaded
