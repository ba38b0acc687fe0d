"""Render errors as problem documents (RFC 9457)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from quart import Quart, Response, g
from quart_schema import RequestSchemaValidationError
from werkzeug.exceptions import HTTPException

from collidium.contracts.identity import IdentityUnavailable
from collidium.contracts.storage import StorageUnavailable
from collidium.database.errors import is_away
from collidium.errors import CollidiumError, InvalidInput, Unavailable

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

#: Limits of the problems of a request that a response contains.
SHOWN_PROBLEMS: Final = 20
LONGEST_FIELD: Final = 100


def install(app: Quart) -> None:
    """Register handlers for all errors."""
    app.register_error_handler(CollidiumError, shown)
    app.register_error_handler(RequestSchemaValidationError, _invalid)
    app.register_error_handler(HTTPException, of_http)
    app.register_error_handler(IdentityUnavailable, _identity_unavailable)
    app.register_error_handler(StorageUnavailable, _storage_unavailable)
    app.register_error_handler(Exception, _unexpected)


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem document as a response."""
    members = {"request_id": g.get("request_id", "")} | ({"errors": list(errors)} if errors else {})
    response = Response(document(status, detail, title, **members), status=status, content_type=MEDIA_TYPE)
    response.headers.update(headers or {})
    return response


def document(status: int, detail: str, title: str | None = None, **members: Any) -> bytes:
    """Return a problem document; the default title is that of the status."""
    title = title or HTTPStatus(status).phrase
    fields = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    return json.dumps(fields, default=str).encode()


async def shown(error: CollidiumError) -> Response:
    """Return the problem document of an error, and log it if it is the server's."""
    if error.status >= 500:
        logger.warning("%s: %s", type(error).__name__, error.detail, exc_info=error.__cause__)
    return problem(error.status, error.title, error.detail, errors=error.errors, headers=error.headers)


async def _invalid(error: RequestSchemaValidationError) -> Response:
    cause = error.validation_error
    if isinstance(cause, ValidationError):
        return await shown(schema_refusal(cause))
    detail = "not of the documented shape"
    return await shown(InvalidInput(f"body: {detail}", errors=[{"field": "", "detail": detail}]))


def schema_refusal(cause: ValidationError, others: Sequence[Mapping[str, Any]] = ()) -> InvalidInput:
    """Return the error of a request that is not of the documented shape, with ``others`` of its problems."""
    found = cause.errors(include_url=False, include_context=False, include_input=False)
    more = max(len(found) - SHOWN_PROBLEMS, 0)
    errors: list[Mapping[str, Any]] = [
        {"field": ".".join(map(str, item["loc"]))[:LONGEST_FIELD], "detail": item["msg"]}
        for item in found[:SHOWN_PROBLEMS]
    ]
    errors += others
    detail = "; ".join(f"{item['field'] or 'body'}: {item['detail']}" for item in errors)
    rest = f"; and {more:,} more" if more else ""
    return InvalidInput(detail + rest, errors=errors)


async def of_http(error: HTTPException) -> Response:
    """Return a problem document for an error of Quart or werkzeug, such as an unknown path."""
    status = error.code or 500
    headers = {name: value for name, value in error.get_headers() if name in {"Allow", "Retry-After"}}
    return problem(status, error.name, error.description or error.name, headers=headers)


async def _identity_unavailable(error: IdentityUnavailable) -> Response:
    logger.warning("identity provider: %s", error)
    detail = "tokens cannot be checked now: the identity provider does not respond; try again soon"
    return await shown(Unavailable(detail))


async def _storage_unavailable(error: StorageUnavailable) -> Response:
    logger.error("storage: %s", error, exc_info=error.__cause__)
    return await shown(Unavailable("the server's storage does not respond; try again soon"))


def database_away(error: Exception) -> Unavailable | None:
    """Return the error to report if ``error`` means that the database is unavailable, else None."""
    if not is_away(error):
        return None
    logger.error("database: %s", error)
    return Unavailable("the server's database does not respond; try again soon")


async def _unexpected(error: Exception) -> Response:
    if isinstance(error, asyncio.CancelledError):
        raise error
    if away := database_away(error):
        return await shown(away)
    logger.error("unexpected error", exc_info=error)
    return problem(500, "Internal error", "the server failed; quote the request_id to its operators")
