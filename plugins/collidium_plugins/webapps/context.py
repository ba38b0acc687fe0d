"""What a handler of a page works with: the backend, the settings, the session of the browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final

import httpx
from quart import Quart, Response, current_app, g, has_request_context, request

from collidium.api import browsers
from collidium.client import AsyncClient
from collidium.errors import Unauthenticated, Unavailable
from collidium.runtime.http_client import HttpClient
from collidium.runtime.network import BoundedTransport
from collidium.sessions import Session, Sessions
from collidium.settings import Settings
from collidium_plugins.webapps.sign_in.flow import Client, Provider

#: Method, rule below the prefix of the module's blueprint, and handler; the rule of the prefix itself is "".
Route = tuple[str, str, Callable[..., Awaitable[Response]]]

#: The blueprint of the plugin `oidc`, whose pages begin with this.
SINGLE_SIGN_ON: Final = "webapps_sso"
_EXTENSION: Final = "collidium.webapps"
#: Where the local hub is mounted on its server.
_LOCAL_HUB: Final = "/hub"

#: Of a backend elsewhere: seconds for a call, calls at a time, and bytes of an answer, more than any has.
_CALL_SECONDS: Final = 30.0
_CONNECTIONS: Final = 100
_LONGEST_ANSWER: Final = 64 * 1024**2


class SignInNeeded(Unauthenticated):
    """Only for users who are signed in."""


@dataclass(frozen=True, slots=True)
class Apart:
    """What pages have that are served apart from the platform: its address, and sessions of their own."""

    backend: str
    sessions: Sessions


@dataclass(frozen=True, slots=True)
class Web:
    """What the pages of one process share."""

    settings: Settings
    #: Calls the backend without a token.
    client: AsyncClient
    #: The backend's address for scripts; empty: the pages' own.
    api_base: str
    #: The hub as this machine reaches it.
    hub_url: str
    sessions: Sessions
    #: Signs in with the hub.
    sign_in: Client
    #: Whether people sign in with another provider, too: on pages of the server's own, with its plugin.
    single_sign_on: bool


@asynccontextmanager
async def opened(app: Quart, settings: Settings, apart: Apart | None) -> AsyncIterator[None]:
    """Let the application serve the pages."""
    backend = apart.backend if apart else settings.base_url
    sessions = apart.sessions if apart else _sessions_of_platform()
    hub_url = settings.hub_url or backend + _LOCAL_HUB
    async with AsyncExitStack() as stack:
        transport = over_http() if apart else in_process(app)
        client = AsyncClient(backend, token="", admin_token="", transport=transport)
        await stack.enter_async_context(client)
        provider = Provider(hub_url)
        stack.push_async_callback(provider.close)
        secret = settings.oauth_client_secret.get_secret_value() if settings.oauth_client_secret else None
        app.extensions[_EXTENSION] = Web(
            settings,
            client,
            client.backend if apart else "",
            hub_url,
            sessions,
            Client(provider, settings.oauth_client_id, secret),
            single_sign_on=SINGLE_SIGN_ON in app.blueprints,
        )
        stack.callback(app.extensions.pop, _EXTENSION)
        yield


def _sessions_of_platform() -> Sessions:
    # All domains come with the platform, which pages apart do without.
    from collidium.api.context import platform

    return platform().sessions


def over_http() -> BoundedTransport:
    """Calls a backend elsewhere."""
    return BoundedTransport(HttpClient(_CALL_SECONDS, _CONNECTIONS), _LONGEST_ANSWER)


def in_process(app: Quart) -> httpx.ASGITransport:
    """Calls the application itself. A context of its own keeps each call from inheriting its caller."""
    # Quart's proxy stands for it only while it handles something.
    asgi = getattr(app, "_get_current_object", lambda: app)()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if has_request_context():
            # The backend counts unknown tokens by the address that they come from: that of the browser.
            passed = request.headers.getlist("X-Forwarded-For")
            headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in passed]
            client = (request.remote_addr or "", 0)
            scope = {**scope, "client": client, "headers": [*scope["headers"], *headers]}
        await asyncio.get_running_loop().create_task(asgi(scope, receive, send), context=Context())

    return httpx.ASGITransport(answer)


def web() -> Web:
    """What the pages share. Raises Unavailable where they have not started."""
    shared: Web | None = current_app.extensions.get(_EXTENSION)
    if shared is None:
        raise Unavailable("the pages did not start; the server's log says why")
    return shared


def backend() -> AsyncClient:
    """The backend, called without a token: what is public."""
    return web().client


def backend_as_user() -> AsyncClient:
    """The backend, called for the user who is signed in. Raises SignInNeeded when there is none."""
    return web().client.acting_as(signed_in().token)


def signed_in() -> Session:
    """The session of the request. Raises SignInNeeded when there is none."""
    session = viewer()
    if session is None:
        raise SignInNeeded(browsers.ENDED if g.get("web_session_ended") else "sign in to continue")
    return session


def viewer() -> Session | None:
    """The session of the request, if the user is signed in."""
    session: Session | None = g.get("web_session")
    return session


def scopes_for(action: str) -> Sequence[str]:
    """What ``order`` or ``link`` needs of the hub in addition to a sign-in."""
    settings = web().settings
    return {"order": settings.oauth_order_scopes, "link": settings.oauth_link_scopes}.get(action, ())


def may(action: str) -> bool:
    """Whether the hub granted the session what the action needs."""
    session = viewer()
    return session is not None and session.scopes.issuperset(scopes_for(action))


async def end_session() -> None:
    """End the session of this request, if it has one, here and in the database."""
    session = viewer()
    if session is not None:
        await web().sessions.end(session.key)
        g.web_session, g.web_session_ended = None, True


def origin() -> str:
    """Where browsers reach the pages: scheme and host, no slash at the end."""
    return browsers.origin(web().settings)


def hub_url() -> str:
    """The hub as browsers reach it; the local one where they reach this server."""
    return web().settings.hub_url or (web().api_base or origin()) + _LOCAL_HUB


def address_for_browsers(address: str) -> str:
    """An address of the hub as browsers reach it: the local hub answers with those by which it was asked."""
    within = f"{web().hub_url}/"
    return f"{hub_url()}/{address.removeprefix(within)}" if address.startswith(within) else address
