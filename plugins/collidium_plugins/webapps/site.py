"""All addresses of the pages, and what they share while a server serves them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from quart import Blueprint, current_app
from werkzeug.exceptions import HTTPException

from collidium.settings import Settings
from collidium_plugins.webapps import (
    api_reference,
    assets,
    context,
    errors,
    events,
    front,
    headers,
    leaderboard,
    models,
    my_submissions,
    simulate,
    uploads,
)
from collidium_plugins.webapps.context import Apart, Route
from collidium_plugins.webapps.sign_in import forms
from collidium_plugins.webapps.sign_in import routes as sign_in

#: What is mounted where: the prefix, and the routes below it. The blueprint is named for its prefix.
PAGES: Final[dict[str, Sequence[Route]]] = {
    "/": front.ROUTES,
    "/events": events.ROUTES,
    "/simulate": simulate.ROUTES,
    "/leaderboard": [*leaderboard.ROUTES, *uploads.ROUTES, *my_submissions.ROUTES],
    "/models": models.ROUTES,
    "/docs": api_reference.ROUTES,
    "/web": [*assets.ROUTES, *sign_in.ROUTES],
}


def make_blueprints(settings: Settings, apart: Apart | None = None) -> Sequence[Blueprint]:
    """The pages, calling the server that they are mounted on, or that of ``apart``."""
    blueprints = {prefix: _blueprint(prefix, routes) for prefix, routes in PAGES.items()}
    blueprints["/web"].app_errorhandler(HTTPException)(errors.elsewhere)

    @blueprints["/web"].while_app_serving
    async def serve() -> AsyncGenerator[None]:
        async with context.opened(current_app, settings, apart):
            yield

    return list(blueprints.values())


def _blueprint(prefix: str, routes: Sequence[Route]) -> Blueprint:
    name = f"webapps{prefix.rstrip('/').replace('/', '_')}"
    blueprint = Blueprint(name, __name__, url_prefix=prefix, template_folder="templates")
    for number, (method, rule, handler) in enumerate(routes):
        blueprint.add_url_rule(rule, f"{handler.__name__}_{number}", handler, methods=[method])
    blueprint.before_request(forms.find_session)
    blueprint.after_request(headers.protect)
    errors.install(blueprint)
    return blueprint
