"""Every request has an id: in its answer, its errors and its log lines."""

from __future__ import annotations

import logging
import time
import uuid

from quart import Quart, Response, g, request

from collidium.errors import NotFound
from collidium.logs import http_request_id

logger = logging.getLogger("collidium.access")


def install(app: Quart) -> None:
    """Give requests their ids and log each with its outcome, never its headers or query."""

    @app.before_request
    async def begin() -> None:
        g.started = time.perf_counter()
        g.request_id = uuid.uuid4().hex
        http_request_id.set(g.request_id)
        # No name, id or cursor holds one, and PostgreSQL cannot even compare with it.
        if "\0" in request.path or any("\0" in value for value in request.args.values()):
            raise NotFound("no address here holds a null character")

    @app.after_request
    async def end(response: Response) -> Response:
        response.headers["X-Request-ID"] = g.request_id
        if logger.isEnabledFor(logging.INFO):
            milliseconds = (time.perf_counter() - g.started) * 1000
            logger.info("%s %s %d %.1f ms", request.method, request.path, response.status_code, milliseconds)
        return response
