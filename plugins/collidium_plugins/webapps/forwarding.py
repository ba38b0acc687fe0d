"""What scripts call for the account: the same endpoints, with the session's token instead of the cookie."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

import httpx
from quart import Response, request

from collidium.errors import Forbidden, NotFound, Unavailable, UpstreamError
from collidium_plugins.webapps import context
from collidium_plugins.webapps.routes import Route
from collidium_plugins.webapps.sign_in import forms

#: Below it stand the calls, under the paths that they have at the backend.
PREFIX: Final = "/web"

#: What may be called, and nothing else.
CALLS: Final = (
    ("GET", "/v1/me"),
    ("GET", "/v1/me/transactions"),
    ("GET", "/v1/me/submissions"),
    ("GET", "/v1/requests"),
    ("GET", "/v1/requests/<request_id>"),
    ("POST", "/v1/simulate"),
    ("POST", "/v1/requests/<request_id>/cancel"),
)
#: The same with a file as the body; how large it may be is the backend's to say.
UPLOADS: Final = (
    ("POST", "/v1/benchmark/<task>/check"),
    ("POST", "/v1/benchmark/<task>/submit"),
)

#: What is passed on of a call, beside the token, and of its answer. No cookie is, in either direction.
_ASKED: Final = ("Accept", "Content-Encoding", "Content-Type", "Idempotency-Key", "If-None-Match")
_ANSWERED: Final = (
    "Allow",
    "Cache-Control",
    "Content-Type",
    "ETag",
    "Link",
    "Location",
    "Retry-After",
    "X-Request-ID",
)


def _route(method: str, rule: str, *, upload: bool = False) -> Route:
    async def forward(**names: str) -> Response:
        # The secret of a form is not looked for in a body that goes on to somebody else.
        if request.method not in forms.SAFE and forms.HEADER not in request.headers:
            raise Forbidden(f"calls of scripts carry the header {forms.HEADER}")
        return await (_upload if upload else _call)(_path(rule, names))

    return (method, rule, forward)


def _path(rule: str, names: dict[str, str]) -> str:
    """The address at the backend, each name as one segment of it."""
    for name, value in names.items():
        if value in {".", ".."}:
            raise NotFound("there is no such address")
        rule = rule.replace(f"<{name}>", quote(value, safe=""))
    return rule


async def _call(path: str) -> Response:
    return await _exchange(context.web().forwarding.calls, path, await request.body)


async def _upload(path: str) -> Response:
    request.max_content_length = None
    return await _exchange(context.web().forwarding.uploads, path, aiter(request.body))


async def _exchange(client: httpx.AsyncClient, path: str, content: bytes | AsyncIterator[bytes]) -> Response:
    headers = {name: request.headers[name] for name in _ASKED if name in request.headers}
    headers |= {"Authorization": f"Bearer {context.signed_in().token}", "Accept-Encoding": "identity"}
    if request.content_length is not None:
        headers["Content-Length"] = str(request.content_length)
    query = request.query_string.decode("latin-1")
    try:
        answer = await client.request(
            request.method, f"{path}?{query}" if query else path, headers=headers, content=content
        )
    except (httpx.RequestError, httpx.InvalidURL) as error:
        # The kind of error says enough; its request carries the token.
        raise Unavailable(f"the platform is away ({type(error).__name__}); try again soon") from None
    return await _answer(answer)


async def _answer(answer: httpx.Response) -> Response:
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        await context.end_session()
        context.signed_in()
    if answer.is_redirect:
        raise UpstreamError("the platform redirects elsewhere; operators: check PLATFORM_BACKEND")
    response = Response(answer.content, status=answer.status_code)
    del response.headers["Content-Type"]
    for name in _ANSWERED:
        if name in answer.headers:
            response.headers[name] = _as_called_here(answer.headers[name])
    response.headers.setdefault("Cache-Control", "private, no-store")
    return response


def _as_called_here(value: str) -> str:
    """Addresses that lead on, of a Link or a Location, lead through here, too."""
    return re.sub("^(<?)(?=/v1/)", rf"\1{PREFIX}", value)


ROUTES: Final[list[Route]] = [
    *(_route(method, rule) for method, rule in CALLS),
    *(_route(method, rule, upload=True) for method, rule in UPLOADS),
]
