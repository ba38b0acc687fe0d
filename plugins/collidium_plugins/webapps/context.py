"""Shared by the handlers of pages: the backend, the settings, and the browser's session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx
from quart import Quart, Response, current_app, g, has_request_context, request

from collidium.api import browsers
from collidium.client import AsyncClient
from collidium.client.calls.call import Call, Credential, endpoint, segment
from collidium.client.responses import Response as Answer
from collidium.errors import Unauthenticated, Unavailable
from collidium.runtime.http_client import HttpClient
from collidium.runtime.network import BoundedTransport
from collidium.sessions import Session, Sessions
from collidium.settings import Settings
from collidium_plugins.webapps.sign_in.flow import OAuthClient, OAuthProvider

#: Method, rule below the blueprint's prefix ("" for the prefix itself), and handler.
Route = tuple[str, str, Callable[..., Awaitable[Response]]]

#: The blueprint of the plugin `oidc`.
SINGLE_SIGN_ON: Final = "webapps_sso"
_EXTENSION: Final = "collidium.webapps"
#: Path of the local hub on its server.
_LOCAL_HUB: Final = "/hub"

#: Limits for a remote backend: timeout, connections and size of a response.
_CALL_SECONDS: Final = 30.0
_CONNECTIONS: Final = 100
_RESPONSE_BYTES: Final = 64 * 1024**2


class SignInNeeded(Unauthenticated):
    """The page requires a sign-in."""


class Backend(AsyncClient):
    """A client that reads responses as they are, too."""

    @endpoint
    def unread(self, path: str, query: Mapping[str, str | int | bool]) -> Call[bytes]:
        """Return all that a page depends on of a response: its validator, the next address and its body."""
        return Call("GET", path, _unread, Credential.NONE, query=query)


def _unread(response: Answer) -> bytes:
    validator = response.headers.get("etag", "")
    return f"{validator} {response.next_link}\n".encode() + response.content


@dataclass(frozen=True, slots=True)
class Standalone:
    """Pages in a server of their own: the address of their backend, and their own sessions."""

    backend: str
    sessions: Sessions


@dataclass(frozen=True, slots=True)
class Web:
    """State shared by the pages of a process."""

    settings: Settings
    #: Calls the backend without a token.
    client: Backend
    #: The backend's URL for scripts; empty if it is the pages' own.
    api_base: str
    #: The hub's URL from this machine.
    hub_url: str
    sessions: Sessions
    #: The OAuth client for the hub.
    sign_in: OAuthClient
    #: Whether the plugin `oidc` offers another provider.
    single_sign_on: bool
    #: Returns the version of a challenge's leaderboard by the challenge's name.
    board_version: Callable[[str], Awaitable[Hashable]]


@asynccontextmanager
async def opened(app: Quart, settings: Settings, standalone: Standalone | None) -> AsyncIterator[None]:
    """Open the state of the pages for the application."""
    backend = standalone.backend if standalone else settings.base_url
    sessions = standalone.sessions if standalone else _sessions_of_platform()
    hub_url = settings.hub_url or backend + _LOCAL_HUB
    async with AsyncExitStack() as stack:
        transport = over_http() if standalone else in_process(app)
        client = Backend(backend, token="", admin_token="", transport=transport)
        await stack.enter_async_context(client)
        provider = OAuthProvider(hub_url)
        stack.push_async_callback(provider.close)
        secret = settings.oauth_client_secret.get_secret_value() if settings.oauth_client_secret else None
        app.extensions[_EXTENSION] = Web(
            settings,
            client,
            client.backend if standalone else "",
            hub_url,
            sessions,
            OAuthClient(provider, settings.oauth_client_id, secret),
            single_sign_on=SINGLE_SIGN_ON in app.blueprints,
            board_version=partial(_version_by_call, client) if standalone else _version_in_platform(),
        )
        stack.callback(app.extensions.pop, _EXTENSION)
        yield


def _sessions_of_platform() -> Sessions:
    # Importing the platform imports all domains, which standalone pages do not need.
    from collidium.api.context import platform

    return platform().sessions


def _version_in_platform() -> Callable[[str], Awaitable[Hashable]]:
    # Without a request, which takes several times as long; each kept page needs it.
    from collidium.api.leaderboards import validator

    return validator


async def _version_by_call(client: Backend, challenge: str) -> Hashable:
    return await client.unread(f"/v1/leaderboard/{segment(challenge)}", {"limit": 1})


def over_http() -> BoundedTransport:
    """Return a transport to a remote backend."""
    return BoundedTransport(HttpClient(_CALL_SECONDS, _CONNECTIONS), _RESPONSE_BYTES)


def in_process(app: Quart) -> httpx.ASGITransport:
    """Return a transport to the application itself. Each call gets a context of its own."""
    asgi = app.asgi_app  # of the application itself, also if it comes as Quart's proxy

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if has_request_context():
            # The backend limits invalid tokens per address, so it needs the browser's.
            passed = request.headers.getlist("X-Forwarded-For")
            headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in passed]
            client = (request.remote_addr or "", 0)
            # Compressing what is decompressed here would be work for nothing.
            own = [(name, value) for name, value in scope["headers"] if name.lower() != b"accept-encoding"]
            scope = {**scope, "client": client, "headers": [*own, *headers]}
        await asyncio.get_running_loop().create_task(asgi(scope, receive, send), context=Context())

    return httpx.ASGITransport(answer)


def web() -> Web:
    """Return the state of the pages. Raises Unavailable if they did not start."""
    shared: Web | None = current_app.extensions.get(_EXTENSION)
    if shared is None:
        raise Unavailable("the pages did not start; see the server's log")
    return shared


def backend() -> Backend:
    """Return a client of the backend without a token."""
    return web().client


def backend_as_user() -> AsyncClient:
    """Return a client of the backend for the signed-in user. Raises SignInNeeded."""
    return web().client.acting_as(signed_in().token)


async def board_version(challenge: str) -> Hashable:
    """Return the version of a challenge's leaderboard. Raises NotFound."""
    return await web().board_version(challenge)


def signed_in() -> Session:
    """Return the session of the request. Raises SignInNeeded if there is none."""
    session = viewer()
    if session is None:
        raise SignInNeeded(browsers.ENDED if g.get("web_session_ended") else "sign in to continue")
    return session


def viewer() -> Session | None:
    """Return the session of the request, if the user is signed in."""
    session: Session | None = g.get("web_session")
    return session


def scopes_for(action: str) -> Sequence[str]:
    """The hub's scopes that the action ``order`` or ``link`` requires."""
    settings = web().settings
    return {"order": settings.oauth_order_scopes, "link": settings.oauth_link_scopes}.get(action, ())


def may(action: str) -> bool:
    """Whether the session has the scopes of the action."""
    session = viewer()
    return session is not None and session.scopes.issuperset(scopes_for(action))


async def end_session() -> None:
    """End the session of the request, if it has one."""
    session = viewer()
    if session is not None:
        await web().sessions.end(session.key)
        g.web_session, g.web_session_ended = None, True


def origin() -> str:
    """The origin of the pages in browsers: scheme and host."""
    return browsers.origin(web().settings)


def shell(*commands: str) -> str:
    """Commands of a shell that call this server."""
    return "\n".join((f"export PLATFORM_BACKEND={web().api_base or origin()}", *commands))


def hub_url() -> str:
    """The hub's URL in browsers."""
    return web().settings.hub_url or (web().api_base or origin()) + _LOCAL_HUB


def address_for_browsers(address: str) -> str:
    """Replace the hub's URL for this machine by that for browsers."""
    within = f"{web().hub_url}/"
    return f"{hub_url()}/{address.removeprefix(within)}" if address.startswith(within) else address
