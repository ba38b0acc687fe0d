"""What a handler of a page works with: the backend, the settings, who looks at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from quart import Quart, current_app, g, request

from collidium.client import AsyncClient
from collidium.errors import Unauthenticated, Unavailable
from collidium.settings import Settings
from collidium_plugins.webapps import ways
from collidium_plugins.webapps.session import Session
from collidium_plugins.webapps.sign_in import service
from collidium_plugins.webapps.sign_in.service import SignIn

_EXTENSION: Final = "collidium.webapps"
#: Where the local hub is mounted on its server.
_LOCAL_HUB: Final = "/hub"

ENDED: Final = "your session has ended; sign in again"


class SignInNeeded(Unauthenticated):
    """Only for somebody who is signed in."""


@dataclass(frozen=True, slots=True)
class Web:
    """What the pages of one process share."""

    settings: Settings
    #: Calls the backend as nobody.
    client: AsyncClient
    #: How what browsers call for the account is passed on to the backend.
    forwarding: ways.Forwarding
    #: The backend's address for scripts; empty: the pages' own.
    api_base: str
    #: The hub as this machine reaches it.
    hub_url: str
    sign_in: SignIn


@asynccontextmanager
async def opened(app: Quart, settings: Settings, backend: str | None) -> AsyncIterator[None]:
    """Let the application serve the pages."""
    hub_url = settings.hub_url or (backend or settings.base_url) + _LOCAL_HUB
    # Mounted, a call need not leave the process; it is the same call all the same.
    way = ways.elsewhere() if backend else ways.in_process(app)
    async with AsyncExitStack() as stack:
        client = AsyncClient(backend or settings.base_url, token="", admin_token="", way=way)
        await stack.enter_async_context(client)
        forwarding = await stack.enter_async_context(
            ways.forwarding(client.backend, None if backend else app)
        )
        sign_in = await stack.enter_async_context(service.opened(settings, hub_url))
        api_base = client.backend if backend else ""
        app.extensions[_EXTENSION] = Web(settings, client, forwarding, api_base, hub_url, sign_in)
        stack.callback(app.extensions.pop, _EXTENSION)
        yield


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
    """The backend, called for whoever is signed in. Raises SignInNeeded when nobody is."""
    return web().client.acting_as(signed_in().token)


def signed_in() -> Session:
    """Who is signed in. Raises SignInNeeded when nobody is."""
    session = viewer()
    if session is None:
        raise SignInNeeded(ENDED if g.get("web_session_ended") else "sign in to go on")
    return session


def viewer() -> Session | None:
    """Who looks at the page, if they are signed in."""
    session: Session | None = g.get("web_session")
    return session


async def end_session() -> None:
    """End the session of this request, if it has one, here and in the store."""
    session = viewer()
    if session is not None:
        await web().sign_in.sessions.end(session.key)
        g.web_session, g.web_session_ended = None, True


def origin() -> str:
    """Where browsers reach the pages: scheme and host, no slash at the end."""
    return web().settings.public_url or f"{request.scheme}://{request.host}"


def hub_url() -> str:
    """The hub as browsers reach it; the local one where they reach this server."""
    return web().settings.hub_url or (web().api_base or origin()) + _LOCAL_HUB


def as_browsers_do(address: str) -> str:
    """An address of the hub as browsers reach it: the local hub tells those by which it was asked."""
    within = f"{web().hub_url}/"
    return f"{hub_url()}/{address.removeprefix(within)}" if address.startswith(within) else address
