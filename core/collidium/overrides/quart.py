"""Quart: connections with backpressure, isolated functions of blueprints, and replaced query parameters.

- A connection makes its request in a private method, and reads the body as fast as it comes
  (https://github.com/pallets/quart/issues/152, open; https://github.com/pallets/quart/pull/427, closed).
  ``collidium.api.bodies`` stops reading instead.
- The functions that a blueprint registers for startup and shutdown run as the application's own: one that
  fails ends the server. Quart has no hook around them; no issue is known.
- Query parameters of a request are parsed on first use, with no way to change them.

It can go when Quart bounds what it buffers, and lets an application wrap what blueprints register.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

from hypercorn.typing import ASGISendCallable
from quart import Blueprint, Quart
from quart import Request as QuartRequest
from quart.asgi import ASGIHTTPConnection
from werkzeug.datastructures import MultiDict

TESTED: Final = {"quart": ("0.20.0", "0.22.0")}

Function = Callable[[], Any]
Wrapper = Callable[[Function], Callable[[], Awaitable[None]]]


class HTTPConnection(ASGIHTTPConnection):
    """A connection that publishes how it makes its request."""

    def make_request(self, send: ASGISendCallable) -> QuartRequest:
        """Return the request of the connection's scope, without a body yet."""
        return self._create_request_from_scope(send)


def register_wrapped(
    app: Quart,
    blueprint: Blueprint,
    *,
    before: Wrapper,
    during: Callable[[AsyncGenerator[None]], AsyncGenerator[None]],
    after: Wrapper,
) -> None:
    """Register a blueprint, and wrap its functions for startup and shutdown."""
    starts, serves, ends = app.before_serving_funcs, app.while_serving_gens, app.after_serving_funcs
    known = len(starts), len(serves), len(ends)
    app.register_blueprint(blueprint)
    starts[known[0] :] = [before(function) for function in starts[known[0] :]]
    serves[known[1] :] = [during(generator) for generator in serves[known[1] :]]
    ends[known[2] :] = [after(function) for function in ends[known[2] :]]


def run_first(app: Quart, blueprint: Blueprint, function: Callable[[], Awaitable[None]]) -> None:
    """Call a function before each request to a blueprint, and before the blueprint's own such functions."""
    app.before_request_funcs[blueprint.name].insert(0, function)


def replace_query(request: QuartRequest, values: MultiDict[str, str]) -> None:
    """Replace the query parameters of a request."""
    request.args = values  # pyright: ignore[reportAttributeAccessIssue]  # a cached property
