"""Error pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import escape
from quart import Blueprint, Quart, Response, g
from werkzeug.exceptions import HTTPException

from collidium.api import browsers, problems
from collidium.errors import CollidiumError, Unauthenticated, Unreachable
from collidium_plugins.webapps import context
from collidium_plugins.webapps.rendering import render
from collidium_plugins.webapps.sign_in import forms

logger = logging.getLogger(__name__)

#: Headers of an error that are copied to the page.
_KEPT: Final = ("Allow", "Retry-After")

#: Message if the backend does not respond.
AWAY: Final = "the API server does not respond. Try again in a moment"

#: Headings of pages by status.
_TITLES: Final = {
    400: "Bad request",
    401: "Please sign in",
    403: "Not allowed",
    404: "Page not found",
    405: "Method not allowed",
    413: "Too large",
    415: "Wrong file type",
    422: "Please correct this",
    429: "Too many requests",
    500: "Server error",
    502: "Unexpected answer from the hub",
    503: "Temporarily unavailable",
}


def install(blueprint: Blueprint | Quart) -> None:
    """Render all errors of the handlers as pages."""
    blueprint.register_error_handler(CollidiumError, _own)
    blueprint.register_error_handler(HTTPException, of_http)
    blueprint.register_error_handler(Exception, _unexpected)


async def _own(error: CollidiumError) -> Response:
    status = 503 if isinstance(error, Unreachable) else error.status
    if status >= 500:
        logger.warning("%s: %s", type(error).__name__, error.detail, exc_info=error.__cause__)
    if isinstance(error, Unauthenticated) and context.viewer() is not None:
        # The session's token is no longer valid.
        await context.end_session()
        error = context.SignInNeeded(browsers.ENDED)
    return await _response(
        status,
        error.title,
        error_text(error),
        errors=error.errors,
        headers=error.headers,
        form=await forms.page_to_return_to() if isinstance(error, forms.StaleForm) else "",
    )


def error_text(error: CollidiumError) -> str:
    """Return the message of an error for a page."""
    # The client's message names addresses and settings, for users of programs.
    return AWAY if isinstance(error, Unreachable) else error.detail


async def of_http(error: HTTPException) -> Response:
    """Render an error of Quart or werkzeug as a page."""
    status, description = error.code or 500, error.description or ""
    return await _response(status, error.name, description, headers=dict(error.get_headers()))


async def _unexpected(error: Exception) -> Response:
    if isinstance(error, asyncio.CancelledError):
        raise error
    if away := problems.database_away(error):
        return await _own(away)
    logger.error("unexpected error on a page", exc_info=error)
    return await _response(500, "Internal error", "the server failed; it is not your fault")


async def _response(
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
    form: str = "",
) -> Response:
    kept = {name: value for name, value in (headers or {}).items() if name in _KEPT}
    try:
        heading = _TITLES.get(status, title)
        back = await forms.page_to_return_to() if status == 401 else ""
        response = await _page(status, heading, detail, errors, kept.get("Retry-After"), form, back)
        if page := back or form:
            forms.remember(response, page)
    except Exception:  # there must be a page in any case
        logger.exception("the page of an error cannot be shown")
        response = _plain(_TITLES.get(status, title), detail)
    response.status_code = status
    response.headers.update(kept)
    return response


async def _page(
    status: int,
    title: str,
    detail: str,
    errors: Sequence[Mapping[str, Any]],
    retry_after: str | None,
    form: str,
    back: str,
) -> Response:
    sign_in = f"/web/sign-in?{urlencode({'next': back})}" if back else None
    return await render(
        "error.html",
        status=status,
        title=title,
        detail=detail[:1].upper() + detail[1:],
        errors=errors,
        retry_after=retry_after,
        sign_in=sign_in,
        form=form,
        request_id=g.get("request_id", ""),
    )


def _plain(title: str, detail: str) -> Response:
    text = f'<!doctype html><html lang="en"><title>{escape(title)}</title><h1>{escape(title)}</h1>'
    return Response(f"{text}<p>{escape(detail)}</p></html>", content_type="text/html; charset=utf-8")
