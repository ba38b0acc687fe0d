"""What a handler of a page works with: the backend, the settings, who looks at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx
from quart import Quart, current_app, g, request

from collidium.client import AsyncClient
from collidium.errors import Unauthenticated, Unavailable
from collidium.settings import Settings
from collidium_plugins.webapps.session import Session

_EXTENSION: Final = "collidium.webapps"
#: Where the local hub is mounted on its server.
_LOCAL_HUB: Final = "/hub"


@dataclass(frozen=True, slots=True)
class Web:
    """What the pages of one process share."""

    settings: Settings
    #: Calls the backend as nobody.
    client: AsyncClient
    #: How calls reach the backend; None: by the network.
    way: httpx.AsyncBaseTransport | None
    #: The backend's address for scripts; empty: the pages' own.
    api_base: str


@asynccontextmanager
async def opened(app: Quart, settings: Settings, backend: str | None) -> AsyncIterator[None]:
    """Let the application serve the pages."""
    # Mounted, a call need not leave the process; it is the same call all the same.
    asgi = cast(Any, getattr(app, "_get_current_object", lambda: app)())
    way = None if backend else httpx.ASGITransport(asgi, raise_app_exceptions=False)
    async with AsyncClient(backend or settings.base_url, token="", admin_token="", way=way) as client:
        app.extensions[_EXTENSION] = Web(settings, client, way, client.backend if backend else "")
        try:
            yield
        finally:
            del app.extensions[_EXTENSION]


def web() -> Web:
    """What the pages share. Raises Unavailable where they have not started."""
    shared: Web | None = current_app.extensions.get(_EXTENSION)
    if shared is None:
        raise Unavailable("the pages did not start; operators find why in the log")
    return shared


def backend() -> AsyncClient:
    """The backend, called as nobody: what is public."""
    return web().client


def backend_as_user() -> AsyncClient:
    """The backend, called for whoever is signed in. Raises Unauthenticated when nobody is."""
    session = viewer()
    if session is None:
        raise Unauthenticated("sign in to see this page")
    return web().client.acting_as(session.token)


def viewer() -> Session | None:
    """Who looks at the page, if they are signed in."""
    session: Session | None = g.get("web_session")
    return session


def origin() -> str:
    """Where browsers reach the pages: scheme and host, no slash at the end."""
    return web().settings.public_url or f"{request.scheme}://{request.host}"


def hub_url() -> str:
    """The hub as browsers reach it; the local one where they reach this server."""
    return web().settings.hub_url or (web().api_base or origin()) + _LOCAL_HUB
