"""The hub at the root of a port of its own, in addition to its mount.

``huggingface_hub`` before 1.2 fails after every write where the endpoint has a path.
"""

from __future__ import annotations

from typing import Any, Final, cast

from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope
from quart import request

#: Where the hub is mounted on the server's port.
HUB_PATH: Final = "/hub"

_AT_ROOT: Final = "collidium.hub_at_root"


class HubPort:
    """The application, of which requests to ``port`` reach the hub alone, without its path.

    What counts is the socket that took the connection: no header of a client or a proxy decides it.
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
    """The path of a request's target, which may be a whole address (RFC 9112, section 3.2.2)."""
    return target if target.startswith("/") else "/" + target.partition("://")[2].partition("/")[2]


def hub_path() -> str:
    """Return where the caller of this request has the hub: :data:`HUB_PATH`, or nothing at its own port."""
    return "" if cast(dict[str, Any], request.scope).get(_AT_ROOT) else HUB_PATH
