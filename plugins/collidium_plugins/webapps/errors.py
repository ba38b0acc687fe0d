"""Whatever goes wrong on a page is told on a page; what scripts called is answered as the backend answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import escape
from quart import Blueprint, Quart, Response, g, request
from werkzeug.exceptions import HTTPException

from collidium.api.problems import problem
from collidium.errors import CollidiumError, Unauthenticated, Unreachable
from collidium_plugins.webapps import context
from collidium_plugins.webapps.rendering import render
from collidium_plugins.webapps.sign_in import returning

logger = logging.getLogger(__name__)

#: What is below it is called by scripts.
CALLS: Final = "/web/v1/"
#: Headers of an error that the browser is told.
_TOLD: Final = ("Allow", "Retry-After")

#: What people are told whose page needs the backend, which does not answer.
AWAY: Final = "the server that these pages ask is away. Try again in a moment"

#: What a page says at its top, where the platform's own title is written for programs.
_TITLES: Final = {
    400: "That did not work",
    401: "Please sign in",
    403: "Not allowed",
    404: "There is nothing here",
    405: "That is not done here",
    413: "Too large",
    415: "Another kind of file is needed",
    422: "Something is not right yet",
    429: "A little slower, please",
    500: "Something failed here",
    502: "The hub answered wrongly",
    503: "Not right now",
}


def install(blueprint: Blueprint | Quart) -> None:
    """Render every error of its handlers."""
    blueprint.register_error_handler(CollidiumError, _own)
    blueprint.register_error_handler(HTTPException, _http)
    blueprint.register_error_handler(Exception, _unexpected)


async def _own(error: CollidiumError) -> Response:
    status = 503 if isinstance(error, Unreachable) else error.status
    if status >= 500:
        logger.warning("%s: %s", type(error).__name__, error.detail, exc_info=error.__cause__)
    if isinstance(error, Unauthenticated) and context.viewer() is not None:
        # The backend does not take the session's token any more.
        await context.end_session()
        error = context.SignInNeeded(context.ENDED)
    return await _told(status, error.title, in_words(error), errors=error.errors, headers=error.headers)


def in_words(error: CollidiumError) -> str:
    """What people are told of an error."""
    # The client's words are for whoever runs a program: they name addresses and settings.
    return AWAY if isinstance(error, Unreachable) else error.detail


async def _http(error: HTTPException) -> Response:
    headers = dict(error.get_headers())
    return await _told(error.code or 500, error.name, error.description or "", headers=headers)


async def _unexpected(error: Exception) -> Response:
    if isinstance(error, asyncio.CancelledError):
        raise error
    logger.error("unexpected error on a page", exc_info=error)
    return await _told(500, "Internal error", "the server failed; it is not your fault")


async def _told(
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    kept = {name: value for name, value in (headers or {}).items() if name in _TOLD}
    if request.path.startswith(CALLS):
        return problem(status, title, detail, errors=errors, headers=kept)
    try:
        response = await _page(status, _TITLES.get(status, title), detail, errors, kept.get("Retry-After"))
    except Exception:  # whatever it is: there is a page all the same
        logger.exception("the page of an error cannot be shown")
        response = _plain(_TITLES.get(status, title), detail)
    response.status_code = status
    response.headers.update(kept)
    return response


async def _page(
    status: int, title: str, detail: str, errors: Sequence[Mapping[str, Any]], retry_after: str | None
) -> Response:
    sign_in = f"/web/sign-in?{urlencode({'next': await returning.here()})}" if status == 401 else None
    return await render(
        "error.html",
        status=status,
        title=title,
        # Written to follow the name of a program; here it is a sentence.
        detail=detail[:1].upper() + detail[1:],
        errors=errors,
        retry_after=retry_after,
        sign_in=sign_in,
        request_id=g.get("request_id", ""),
    )


def _plain(title: str, detail: str) -> Response:
    text = f'<!doctype html><html lang="en"><title>{escape(title)}</title><h1>{escape(title)}</h1>'
    return Response(f"{text}<p>{escape(detail)}</p></html>", content_type="text/html; charset=utf-8")
