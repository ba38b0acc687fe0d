"""What blueprints of plugins do when the server starts and stops; a failure is its plugin's alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from quart import Blueprint, Quart

from collidium.errors import Unavailable
from collidium.plugins import Plugins


class Isolation:
    """Stands between the application and one blueprint of the plugin ``origin``.

    Its functions for start and end run as ever. One that does not start answers its requests with 503, and
    nothing more of it is started or, but for generators that were, ended.
    """

    def __init__(self, app: Quart, blueprint: Blueprint, loaded: Plugins, origin: str) -> None:
        self._app = app
        self._blueprint = blueprint
        self._loaded = loaded
        self._origin = origin
        self._starts = True

    def register(self) -> None:
        """Register the blueprint; raises what that raises."""
        app = self._app
        before, during, after = app.before_serving_funcs, app.while_serving_gens, app.after_serving_funcs
        known = len(before), len(during), len(after)
        app.register_blueprint(self._blueprint)
        before[known[0] :] = [self._starting(function) for function in before[known[0] :]]
        during[known[1] :] = [self._serving(generator) for generator in during[known[1] :]]
        after[known[2] :] = [self._ending(function) for function in after[known[2] :]]

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
            await self._attempt("end", lambda: _run_out(generator))

    async def _start(self, function: Callable[[], Awaitable[Any]]) -> bool:
        if self._starts and not await self._attempt("start", function):
            self._starts = False
            # Before what the plugin itself does first, which may need what has not started.
            self._app.before_request_funcs[self._blueprint.name].insert(0, self._refuse)
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
        raise Unavailable(f"plugin {self._origin!r} did not start; its operators find why in the log")


async def _run_out(generator: AsyncGenerator[None]) -> None:
    try:
        await generator.__anext__()
    except StopAsyncIteration:
        return
    raise RuntimeError("the generator did not end")
