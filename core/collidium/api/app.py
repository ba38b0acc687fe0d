"""Create the application: blueprints, plugins and error handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import CO_COROUTINE
from typing import Any, Final, ParamSpec

from quart import Quart, Response
from quart.ctx import RequestContext
from quart.typing import ResponseReturnValue, ResponseTypes
from quart_cors import cors
from werkzeug.exceptions import HTTPException

from collidium import __version__, plugins
from collidium.api import (
    access_log,
    accounts,
    admin,
    benchmarks,
    bodies,
    challenges,
    compression,
    datasets,
    evaluations,
    leaderboards,
    metrics,
    mounting,
    openapi,
    problems,
    simulations,
    uploads,
)
from collidium.api.answers import OpenedFile
from collidium.errors import Unavailable
from collidium.overrides.werkzeug import Rule
from collidium.plugins import Plugins
from collidium.runtime import descriptors
from collidium.runtime.interrupts import Noting
from collidium.settings import Settings

P = ParamSpec("P")

#: In the order of their tags in the OpenAPI document.
BLUEPRINTS: Final = (
    accounts.blueprint,
    simulations.blueprint,
    accounts.webhooks,
    accounts.notifications_blueprint,
    benchmarks.blueprint,
    uploads.blueprint,
    evaluations.blueprint,
    leaderboards.blueprint,
    challenges.blueprint,
    challenges.teams_blueprint,
    datasets.models,
    datasets.blueprint,
    admin.blueprint,
    metrics.blueprint,
)


class FileResponse(Response):
    """A response whose file is opened before it begins."""

    file_body_class = OpenedFile


class App(Quart):
    """An application that survives all exceptions of handlers.

    Where no file or socket can be opened, for whatever a handler or a library makes of it, the error is the
    server's.
    """

    url_rule_class = Rule
    response_class = FileResponse

    def ensure_async(self, func: Callable[P, Any]) -> Callable[P, Awaitable[Any]]:
        """Return coroutine functions unchanged; a faster check than Quart's."""
        code = getattr(func, "__code__", None)
        if code is not None and code.co_flags & CO_COROUTINE:
            return func
        return super().ensure_async(func)

    async def full_dispatch_request(self, request_context: RequestContext | None = None) -> ResponseTypes:
        try:
            return await super().full_dispatch_request(request_context)
        except (SystemExit, KeyboardInterrupt) as error:  # of a plugin; it would stop the event loop
            if Noting.is_interrupt(error):
                raise
            raise RuntimeError(f"a handler raised {type(error).__name__}") from error
        except Exception as error:  # raised again
            if not descriptors.are_used_up(error):
                raise
            # Of the file to send, or of the page that shows the error.
            shown = await problems.shown(_too_many_files(error))
            return await self.finalize_request(shown, from_error_handler=True)

    async def make_response(self, result: ResponseReturnValue | HTTPException) -> ResponseTypes:
        """Make the response, and open its file before any after-request function sees its status."""
        response = await super().make_response(result)
        if isinstance(response, Response) and isinstance(response.response, OpenedFile):
            await response.response.open()
        return response

    async def handle_user_exception(self, error: Exception) -> HTTPException | ResponseReturnValue:
        if descriptors.are_used_up(error):
            error = _too_many_files(error)
        return await super().handle_user_exception(error)


def _too_many_files(error: Exception) -> Unavailable:
    unavailable = Unavailable("the server has too many files and connections open; try again soon")
    unavailable.__cause__ = error
    return unavailable


def create_monitor() -> Quart:
    """Create the application of a worker process, which serves only health and metrics."""
    app = App("collidium.monitor", static_folder=None)
    problems.install(app)
    access_log.install(app)
    metrics.install(app)
    app.register_blueprint(metrics.blueprint)
    return app


def create_app(settings: Settings, loaded: Plugins | None = None) -> Quart:
    """Create the application; :func:`~collidium.api.context.set_platform` makes it ready.

    ``loaded`` are the plugins of this process, if they are already loaded.
    """
    loaded = loaded or plugins.load(settings.plugins_blocked)
    app = App("collidium.api", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.config["BODY_TIMEOUT"] = settings.body_timeout_seconds
    # In hub paths, %2F and double slashes are significant.
    app.url_map.merge_slashes = False
    compression.install(app)
    bodies.install(app)
    problems.install(app)
    access_log.install(app)
    metrics.install(app)
    openapi.install(app, __version__)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    mounting.mount(app, settings, loaded)
    if not mounting.has_front_page(app):
        openapi.redirect_front_page(app)
    if settings.cors_origins:
        app = cors(
            app,
            allow_origin=list(settings.cors_origins),
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
            expose_headers=["Link", "Location", "Retry-After", "X-Request-ID"],
            max_age=600,
        )
    return app
