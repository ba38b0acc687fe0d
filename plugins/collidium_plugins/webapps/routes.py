"""How a module of pages says which addresses it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quart import Response

#: Method, rule below the prefix of the module's blueprint, and handler; the rule of the prefix itself is "".
Route = tuple[str, str, Callable[..., Awaitable[Response]]]
