"""Request ids and the access log."""

from __future__ import annotations

import logging
import os
import time
from typing import Final

from quart import Quart, Response, g, request

from collidium.errors import BadRequest, InvalidInput, NotFound
from collidium.runtime import logs

logger = logging.getLogger("collidium.access")

#: Maximum number of characters of a path in the log.
LOGGED_PATH: Final = 500


def install(app: Quart) -> None:
    """Give each request an id and log it with its outcome, but without headers and query."""

    @app.before_request
    async def begin() -> None:
        g.started = time.perf_counter()
        g.request_id = os.urandom(16).hex()
        logs.http_request_id.set(g.request_id)
        logs.account.set("")
        _reject_ambiguous()
        _reject_null_characters()

    @app.after_request
    async def end(response: Response) -> Response:
        response.headers["X-Request-ID"] = g.request_id
        # Users' files and texts must not be interpreted as pages of this origin.
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        if "is_private" in g:
            response.headers.setdefault("Cache-Control", "private, no-store")
        if logger.isEnabledFor(logging.INFO):
            milliseconds = (time.perf_counter() - g.started) * 1000
            method, path = request.method[:20], request.path[:LOGGED_PATH]
            logger.info("%s %s %d %.1f ms", method, path, response.status_code, milliseconds)
        return response


def _reject_null_characters() -> None:
    """Raise NotFound and InvalidInput: no name, id or text contains one, and PostgreSQL rejects it."""
    if "\0" in request.path:
        raise NotFound("no path here holds a null character")
    if request.query_string:
        names = [name for name, value in request.args.items(multi=True) if "\0" in value]
        InvalidInput.raise_for([{"field": name[:100], "detail": "it has a null character"} for name in names])


def _reject_ambiguous() -> None:
    """Raise BadRequest for requests that a proxy could interpret differently (request smuggling)."""
    names = [name.lower() for name, _ in request.headers]  # a single pass over all headers
    for name in ("Authorization", "X-Admin-Token"):
        if names.count(name.lower()) > 1:
            raise BadRequest(f"there are two {name} headers")
    if "transfer-encoding" in names and "content-length" in names:
        raise BadRequest(
            "a body has a Content-Length or a Transfer-Encoding, not both", headers={"Connection": "close"}
        )
