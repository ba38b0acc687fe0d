"""Builds the application: blueprints, plugins, error rendering, and the platform's life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from quart import Quart
from quart_cors import cors

from collidium import __version__, plugins
from collidium.api import accounts, admin, benchmarks, bodies, health, metrics, openapi, problems, requests
from collidium.api.context import EXTENSION
from collidium.errors import ConfigurationError
from collidium.platform import Platform
from collidium.settings import Settings

#: First path segments that belong to the platform; no plugin may mount there.
RESERVED = frozenset({"v1", "admin", "healthz", "readyz", "metrics", "docs", "openapi.json"})


def create_app(settings: Settings) -> Quart:
    """The application; it opens the platform when it starts serving and closes it when it stops."""
    app = Quart("collidium.api", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.config["BODY_TIMEOUT"] = settings.body_timeout_seconds
    # Hub paths hold %2F and doubled slashes with a meaning.
    app.url_map.merge_slashes = False
    bodies.install(app)
    problems.install(app)
    requests.install(app)
    metrics.install(app)
    openapi.install(app, __version__)
    for blueprint in (accounts.blueprint, admin.blueprint, benchmarks.blueprint, health.blueprint):
        app.register_blueprint(blueprint)
    _mount_plugins(app, settings)
    if settings.cors_origins:
        app = cors(
            app,
            allow_origin=list(settings.cors_origins),
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
            expose_headers=["Link", "Location", "Retry-After", "X-Request-ID"],
            max_age=600,
        )

    @app.while_serving
    async def open_platform() -> AsyncGenerator[None]:
        await asyncio.to_thread(bodies.sweep, settings.uploads)
        async with Platform.open(settings) as platform:
            app.extensions[EXTENSION] = platform
            yield

    return app


def _mount_plugins(app: Quart, settings: Settings) -> None:
    loaded = plugins.load(settings.plugins_blocked)
    for prefix, blueprint in loaded.blueprints(settings).things.items():
        if not prefix or not prefix.startswith("/") or prefix.split("/")[1] in RESERVED:
            raise ConfigurationError(f"a plugin may not mount a blueprint at {prefix!r}")
        app.register_blueprint(blueprint)
