"""Blueprints of the pages with their security headers, and the server of `collidium web`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import click
from hypercorn.asyncio import serve
from quart import Blueprint, Quart, Response, current_app, request
from werkzeug.exceptions import HTTPException

from collidium import sessions
from collidium.api import access_log, bodies, browsers, compression, problems
from collidium.api.app import App
from collidium.client.connection import check_backend
from collidium.errors import ConfigurationError, Unavailable
from collidium.files.data_directory import make_private
from collidium.files.held import sweep
from collidium.hub.sources import DEFAULT_BACKEND
from collidium.runtime import logs
from collidium.server.supervisor import listen
from collidium.server.worker import hide_secrets, hypercorn_config, stop_requested
from collidium.settings import Settings
from collidium_plugins.webapps import (
    api_reference,
    assets,
    context,
    datasets,
    errors,
    front,
    leaderboard,
    models,
    simulate,
    submissions,
    teams,
)
from collidium_plugins.webapps.context import Route, Standalone
from collidium_plugins.webapps.leaderboard import provenance
from collidium_plugins.webapps.rendering import FILTERS
from collidium_plugins.webapps.sign_in import forms
from collidium_plugins.webapps.sign_in import routes as sign_in

#: Routes by prefix. Blueprints are named after their prefix.
PAGES: Final[dict[str, Sequence[Route]]] = {
    "/": front.ROUTES,
    "/events": datasets.EVENT_ROUTES,
    "/datasets": datasets.ROUTES,
    "/simulate": simulate.ROUTES,
    "/leaderboard": [
        *leaderboard.ROUTES,
        *provenance.ROUTES,
        *submissions.ROUTES,
        *teams.ROUTES,
    ],
    "/models": models.ROUTES,
    "/docs": api_reference.ROUTES,
    "/guide": assets.GUIDE_ROUTES,
    "/web": [*assets.ROUTES, *sign_in.ROUTES],
}


def make_blueprints(settings: Settings, standalone: Standalone | None = None) -> Sequence[Blueprint]:
    """Make the pages of the server that they are mounted on, or of the server of ``standalone``."""
    blueprints = {prefix: make_blueprint(prefix, routes) for prefix, routes in PAGES.items()}
    blueprints["/web"].app_errorhandler(HTTPException)(_elsewhere)
    for name, form in FILTERS.items():
        blueprints["/web"].add_app_template_filter(form, name)

    @blueprints["/web"].while_app_serving
    async def serve() -> AsyncGenerator[None]:
        async with context.opened(current_app, settings, standalone):
            yield

    return list(blueprints.values())


def make_blueprint(prefix: str, routes: Sequence[Route]) -> Blueprint:
    """Make the pages below a prefix, with sessions, headers and error pages."""
    name = f"webapps{prefix.rstrip('/').replace('/', '_')}"
    blueprint = Blueprint(name, __name__, url_prefix=prefix, template_folder="templates")
    for number, (method, rule, handler) in enumerate(routes):
        blueprint.add_url_rule(rule, f"{handler.__name__}_{number}", handler, methods=[method])
    blueprint.before_request(forms.find_session)
    blueprint.after_request(protect)
    errors.install(blueprint)
    return blueprint


async def _elsewhere(error: HTTPException) -> Response:
    """Unknown path or wrong method: an error page for browsers, a problem document for programs."""
    if not browsers.wants_page():
        return await problems.of_http(error)
    if request.method in browsers.SAFE:
        with suppress(Exception):  # then the page has no session
            await forms.find_session()
    return await protect(await errors.of_http(error))


_FIXED: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


async def protect(response: Response) -> Response:
    """Add security headers, forbid caching of pages for signed-in users, and make others conditional."""
    response.headers["Content-Security-Policy"] = content_security_policy()
    response.headers.update(_FIXED)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "private, no-store" if context.viewer() else "no-cache"
    if _is_public_page(response):
        await response.add_etag()
        await response.make_conditional(request)
    return response


def _is_public_page(response: Response) -> bool:
    return (
        response.status_code == HTTPStatus.OK
        and request.method in browsers.SAFE
        and response.mimetype == "text/html"
        and not response.cache_control.no_store
        and "Set-Cookie" not in response.headers
    )


def content_security_policy() -> str:
    """Allow only our own content, calls to the backend, and forms that redirect to the hub to sign in."""
    try:
        backend, hub = context.web().api_base, _origin(context.hub_url())
    except Unavailable:  # the pages did not start, which the error page reports
        backend, hub = "", ""
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": f"'self' {backend}",
        "form-action": f"'self' {hub}",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value.strip()}" for name, value in rules.items())


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def run(settings: Settings, backend: str | None) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigurationError when it cannot start."""
    address = check_backend(backend or os.environ.get("PLATFORM_BACKEND") or DEFAULT_BACKEND)
    logs.configure(settings.log_level, settings.log_format)
    hide_secrets()
    with listen(settings.host, settings.port, settings.body_timeout_seconds) as listener:
        settings = settings.model_copy(update={"port": listener.getsockname()[1]})
        if settings.base_url == address:
            raise ConfigurationError(
                f"the pages at {address} cannot be their own backend: give --backend or --port"
            )

        async def until_stopped() -> None:
            click.echo(f"The pages of {address} are at {settings.base_url}")
            await stop_requested()

        make_private(settings.uploads)
        sweep(settings.uploads)

        async def serve_pages() -> None:
            async with sessions.opened(settings) as opened:
                config = hypercorn_config([listener], settings.log_level)
                app = make_app(settings, Standalone(address, opened))
                await serve(app, config, shutdown_trigger=until_stopped)

        asyncio.run(serve_pages())


def make_app(settings: Settings, standalone: Standalone) -> Quart:
    """Make the application of standalone pages."""
    app = App("collidium.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.config["BODY_TIMEOUT"] = settings.body_timeout_seconds
    compression.install(app)
    bodies.install(app)
    access_log.install(app)
    # For paths outside of all blueprints, too.
    errors.install(app)
    app.after_request(protect)
    for blueprint in make_blueprints(settings, standalone):
        app.register_blueprint(blueprint)
    return app
