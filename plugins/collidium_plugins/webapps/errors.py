"""Whatever goes wrong on a page is told on a page."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quart import Blueprint, Response, g
from werkzeug.exceptions import HTTPException

from collidium.errors import CollidiumError
from collidium_plugins.webapps.rendering import render

logger = logging.getLogger(__name__)

#: Headers of an error that the browser is told.
_TOLD: Final = ("Allow", "Retry-After")


def install(blueprint: Blueprint) -> None:
    """Render every error of the blueprint's handlers."""
    blueprint.register_error_handler(CollidiumError, _own)
    blueprint.register_error_handler(HTTPException, _http)
    blueprint.register_error_handler(Exception, _unexpected)


async def _own(error: CollidiumError) -> Response:
    return await _page(error.status, error.title, error.detail, errors=error.errors, headers=error.headers)


async def _http(error: HTTPException) -> Response:
    headers = {name: value for name, value in error.get_headers() if name in _TOLD}
    return await _page(error.code or 500, error.name, error.description or "", headers=headers)


async def _unexpected(error: Exception) -> Response:
    logger.error("unexpected error on a page", exc_info=error)
    return await _page(500, "Something failed here", "The server failed; it is not your fault.")


async def _page(
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    response = await render(
        "error.html",
        status=status,
        title=title,
        detail=detail,
        errors=errors,
        request_id=g.get("request_id", ""),
    )
    response.status_code = status
    response.headers.update(headers or {})
    return response
