"""Mount the blueprints of plugins in isolation: a failure is recorded for its plugin.

The hub is also served at the root of its own port, because ``huggingface_hub`` before 1.2 fails after writes
to endpoints with a path.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, cast

from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Blueprint, Quart, request

from collidium.errors import Unavailable
from collidium.overrides.quart import register_wrapped, run_first
from collidium.plugins import Plugins
from collidium.settings import Settings

#: First path segments that are reserved for the platform.
RESERVED: Final = frozenset({"v1", "admin", "healthz", "readyz", "mail", "metrics", "openapi.json"})

#: Path of the front page, which one plugin may provide.
FRONT: Final = "/"

#: No empty segments, variables or dot segments.
_PREFIX: Final = re.compile(r"(/(?!\.+(/|\Z))[A-Za-z0-9._~-]+)+")

#: Where the hub is mounted on the server's port.
HUB_PATH: Final = "/hub"

_AT_ROOT: Final = "collidium.hub_at_root"


def mount(app: Quart, settings: Settings, loaded: Plugins) -> None:
    """Mount all valid blueprints; failures are recorded in ``loaded``."""
    provided = loaded.blueprints(settings)
    mounted: list[str] = []
    for prefix, blueprint in provided.things.items():
        origin = provided.origins[prefix]
        with loaded.isolated(origin, f"mounting blueprint {prefix!r}"):
            _check(blueprint, prefix, mounted)
            _mount_on_scratch(app, blueprint, prefix)
            Isolation(app, blueprint, loaded, origin).register()
            mounted.append(prefix)


def has_front_page(app: Quart) -> bool:
    """Whether a plugin provides the front page."""
    return any(rule.rule == FRONT for rule in app.url_map.iter_rules())


def _check(blueprint: object, prefix: str, mounted: list[str]) -> None:
    if not isinstance(blueprint, Blueprint):
        raise TypeError(f"{type(blueprint).__name__} is no quart.Blueprint")
    if prefix == FRONT:
        return
    if not _PREFIX.fullmatch(prefix):
        raise ValueError("a url_prefix is written /name or /name/name")
    if prefix.split("/")[1].casefold() in RESERVED:  # people and proxies confuse the two
        raise ValueError("the address is reserved for the platform")
    for other in mounted:
        if other != FRONT and _overlap(prefix, other):
            raise ValueError(f"the address overlaps with {other}, which another blueprint has")


def _overlap(prefix: str, other: str) -> bool:
    one, two = f"{prefix}/".casefold(), f"{other}/".casefold()
    return one.startswith(two) or two.startswith(one)


def _mount_on_scratch(app: Quart, blueprint: Blueprint, prefix: str) -> None:
    """Mount the blueprint on a scratch application first: a failure leaves the application unchanged."""
    scratch = _scratch(app)
    scratch.register_blueprint(blueprint)
    if prefix == FRONT and any(rule.rule != FRONT for rule in scratch.url_map.iter_rules()):
        raise ValueError(
            "a blueprint at / may only provide the front page: mount its other routes under /name"
        )


def _scratch(app: Quart) -> Quart:
    scratch = Quart(app.import_name, static_folder=None)
    scratch.url_rule_class = app.url_rule_class
    scratch.url_map.converters.update(app.url_map.converters)
    scratch.url_map.merge_slashes = app.url_map.merge_slashes
    return scratch


class Isolation:
    """Isolates the startup and shutdown functions of one blueprint.

    If one fails at startup, requests to the blueprint get 503, and its other functions are not called, except
    to finish generators that started.
    """

    def __init__(self, app: Quart, blueprint: Blueprint, loaded: Plugins, origin: str) -> None:
        self._app = app
        self._blueprint = blueprint
        self._loaded = loaded
        self._origin = origin
        self._starts = True

    def register(self) -> None:
        """Register the blueprint; raises what that raises."""
        register_wrapped(
            self._app, self._blueprint, before=self._starting, during=self._serving, after=self._ending
        )

    def _starting(self, function: Callable[[], Any]) -> Callable[[], Awaitable[None]]:
        async def start() -> None:
            await self._start(self._app.ensure_async(function))

        return start

    def _ending(self, function: Callable[[], Any]) -> Callable[[], Awaitable[None]]:
        async def end() -> None:
            if self._starts:
                await self._attempt("end", self._app.ensure_async(function))

        return end

    async def _serving(self, generator: AsyncGenerator[None]) -> AsyncGenerator[None]:
        started = await self._start(generator.__anext__)
        yield
        if started:
            await self._attempt("end", lambda: _exhaust(generator))

    async def _start(self, function: Callable[[], Awaitable[Any]]) -> bool:
        if self._starts and not await self._attempt("start", function):
            self._starts = False
            # Before the plugin's own functions, which may depend on its startup.
            run_first(self._app, self._blueprint, self._refuse)
        return self._starts

    async def _attempt(self, what: str, function: Callable[[], Awaitable[Any]]) -> bool:
        done = False
        with self._loaded.isolated(self._origin, f"the {what} of blueprint {self._blueprint.url_prefix!r}"):
            await function()
            done = True
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError
        return done

    async def _refuse(self) -> None:
        raise Unavailable(f"plugin {self._origin!r} did not start; the server's log has the reason")


async def _exhaust(generator: AsyncGenerator[None]) -> None:
    try:
        await generator.__anext__()
    except StopAsyncIteration:
        return
    raise RuntimeError("the generator did not end")


class HubPort:
    """ASGI middleware that routes requests to ``port`` to the hub, without its path prefix.

    The socket that accepted the connection decides, not a header that clients can forge.
    """

    def __init__(self, app: ASGIFramework, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        server = cast(dict[str, Any], scope).get("server")
        if server is not None and server[1] == self._port:
            scope = _below_hub(scope)
        await self._app(scope, receive, send)


def _below_hub(scope: Scope) -> Scope:
    changed: dict[str, Any] = {**scope, _AT_ROOT: True}
    changed["path"] = HUB_PATH + _path(changed["path"])
    changed["raw_path"] = HUB_PATH.encode() + _path(changed["raw_path"].decode("latin-1")).encode("latin-1")
    return cast(Scope, changed)


def _path(target: str) -> str:
    """Return the path of a request's target, which may be an absolute URL (RFC 9112, section 3.2.2)."""
    return target if target.startswith("/") else "/" + target.partition("://")[2].partition("/")[2]


def hub_path() -> str:
    """Return the path prefix of the hub: :data:`HUB_PATH`, or empty on the hub's own port."""
    return "" if cast(dict[str, Any], request.scope).get(_AT_ROOT) else HUB_PATH
