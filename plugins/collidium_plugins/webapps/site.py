"""All addresses of the pages, their security headers, and what they share while a server serves them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from quart import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException

from collidium.api import browsers, problems
from collidium.errors import Unavailable
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
from collidium_plugins.webapps.context import Apart, Route
from collidium_plugins.webapps.leaderboard import provenance
from collidium_plugins.webapps.sign_in import forms
from collidium_plugins.webapps.sign_in import routes as sign_in

#: What is mounted where: the prefix, and the routes below it. The blueprint is named for its prefix.
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


def make_blueprints(settings: Settings, apart: Apart | None = None) -> Sequence[Blueprint]:
    """The pages, calling the server that they are mounted on, or that of ``apart``."""
    blueprints = {prefix: make_blueprint(prefix, routes) for prefix, routes in PAGES.items()}
    blueprints["/web"].app_errorhandler(HTTPException)(_elsewhere)

    @blueprints["/web"].while_app_serving
    async def serve() -> AsyncGenerator[None]:
        async with context.opened(current_app, settings, apart):
            yield

    return list(blueprints.values())


def make_blueprint(prefix: str, routes: Sequence[Route]) -> Blueprint:
    """Pages below a prefix, with sessions, headers and error pages."""
    name = f"webapps{prefix.rstrip('/').replace('/', '_')}"
    blueprint = Blueprint(name, __name__, url_prefix=prefix, template_folder="templates")
    for number, (method, rule, handler) in enumerate(routes):
        blueprint.add_url_rule(rule, f"{handler.__name__}_{number}", handler, methods=[method])
    blueprint.before_request(forms.find_session)
    blueprint.after_request(protect)
    errors.install(blueprint)
    return blueprint


async def _elsewhere(error: HTTPException) -> Response:
    """An unknown address, or a wrong method: a page for browsers, a problem document for programs."""
    if not browsers.wants_page():
        return await problems.of_http(error)
    if request.method in browsers.SAFE:
        with suppress(Exception):  # the page does without
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
    """Add the security headers. No cache keeps pages of a signed-in user."""
    response.headers["Content-Security-Policy"] = content_security_policy()
    response.headers.update(_FIXED)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "private, no-store" if context.viewer() else "no-cache"
    return response


def content_security_policy() -> str:
    """Scripts, styles and pictures of our own alone; calls to the backend, forms to the hub that signs in."""
    try:
        backend, hub = context.web().api_base, _origin(context.hub_url())
    except Unavailable:  # the page shows that the pages did not start
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
