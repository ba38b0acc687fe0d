"""Builds the application: blueprints, plugins, error rendering."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from inspect import CO_COROUTINE
from typing import Any, Final, ParamSpec

from quart import Quart
from quart.ctx import RequestContext
from quart.routing import QuartRule
from quart.typing import ResponseTypes
from quart_cors import cors

from collidium import __version__, plugins
from collidium.api import (
    access_log,
    accounts,
    admin,
    benchmarks,
    bodies,
    challenges,
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
from collidium.plugins import Plugins
from collidium.settings import Settings

P = ParamSpec("P")

#: In the order of their tags in the API's documents.
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


class Rule(QuartRule):
    """A rule that compiles how its address is built when one is, which is most of its cost."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = cache(partial(super()._compile_builder, append_unknown))
        return lambda *arguments, **values: compiled()(*arguments, **values)


class App(Quart):
    """An application that goes on whatever a handler raises."""

    url_rule_class = Rule

    def ensure_async(self, func: Callable[P, Any]) -> Callable[P, Awaitable[Any]]:
        """Return coroutine functions as they are, found out faster than by Quart."""
        code = getattr(func, "__code__", None)
        if code is not None and code.co_flags & CO_COROUTINE:
            return func
        return super().ensure_async(func)

    async def full_dispatch_request(self, request_context: RequestContext | None = None) -> ResponseTypes:
        try:
            return await super().full_dispatch_request(request_context)
        except SystemExit as error:  # a plugin's: left alone, it would end the event loop and all requests
            raise RuntimeError("a handler asked the process to end") from error


def create_monitor() -> Quart:
    """The application of a process that serves nothing else: its health and its metrics."""
    app = App("collidium.monitor", static_folder=None)
    problems.install(app)
    access_log.install(app)
    metrics.install(app)
    app.register_blueprint(metrics.blueprint)
    return app


def create_app(settings: Settings, loaded: Plugins | None = None) -> Quart:
    """The application; it can answer once it has its platform (:func:`~collidium.api.context.give`).

    ``loaded`` are the plugins of this process, if they are loaded already.
    """
    loaded = loaded or plugins.load(settings.plugins_blocked)
    app = App("collidium.api", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.config["BODY_TIMEOUT"] = settings.body_timeout_seconds
    # Hub paths hold %2F and doubled slashes with a meaning.
    app.url_map.merge_slashes = False
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
