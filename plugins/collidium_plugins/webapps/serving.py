"""Serves the pages alone, from one process."""

from __future__ import annotations

import asyncio
import os

import click
from hypercorn.asyncio import serve
from quart import Quart

from collidium import sessions
from collidium.api import access_log, bodies
from collidium.client.connection import check_backend
from collidium.errors import ConfigurationError
from collidium.files.data_directory import make_private
from collidium.files.held import sweep
from collidium.hub.saved_login import DEFAULT_BACKEND
from collidium.runtime import logs
from collidium.server.run import listen
from collidium.server.worker import hide_secrets, hypercorn_config, stop_requested
from collidium.settings import Settings
from collidium_plugins.webapps import errors
from collidium_plugins.webapps.context import Apart
from collidium_plugins.webapps.site import make_blueprints, protect


def run(settings: Settings, backend: str | None) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigurationError when it cannot start."""
    address = check_backend(backend or os.environ.get("PLATFORM_BACKEND") or DEFAULT_BACKEND)
    logs.configure(settings.log_level, settings.log_format)
    hide_secrets()
    with listen(settings.host, settings.port, settings.body_timeout_seconds) as listener:
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        if settings.base_url == address:
            raise ConfigurationError(f"the pages at {address} would ask themselves: give --backend or --port")

        async def until_stopped() -> None:
            click.echo(f"The pages of {address} are at {settings.base_url}")
            await stop_requested()

        make_private(settings.uploads)
        sweep(settings.uploads)

        async def serve_pages() -> None:
            async with sessions.opened(settings) as opened:
                config = hypercorn_config([listener], settings.log_level)
                app = make_app(settings, Apart(address, opened))
                await serve(app, config, shutdown_trigger=until_stopped)

        asyncio.run(serve_pages())


def make_app(settings: Settings, apart: Apart) -> Quart:
    """The pages as an application of their own."""
    app = Quart("collidium.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.config["BODY_TIMEOUT"] = settings.body_timeout_seconds
    bodies.install(app)
    access_log.install(app)
    # Also for addresses of no blueprint.
    errors.install(app)
    app.after_request(protect)
    for blueprint in make_blueprints(settings, apart):
        app.register_blueprint(blueprint)
    return app
