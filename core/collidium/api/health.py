"""``/healthz`` (the process runs) and ``/readyz`` (it can do its work)."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id
from tortoise.exceptions import BaseORMException

from collidium import __version__, database, operations
from collidium.api.answers import answer
from collidium.api.context import platform
from collidium.database.errors import is_away
from collidium.records import Health, Readiness

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
@operation_id("health")
@document_response(Health)
async def healthz() -> Response:
    """Whether the process runs."""
    return answer(Health(status="ok", version=__version__))


@blueprint.get("/readyz")
@operation_id("ready")
@document_response(Readiness)
@document_response(Readiness, 503)
async def readyz() -> Response:
    """Whether the server can do its work now; also names plugins that failed to load."""
    failures = platform().plugins.failures
    try:
        await database.ping()
        frozen = await operations.is_frozen()
    except Exception as error:
        if not is_away(error) and not isinstance(error, BaseORMException):  # a table that is missing
            raise
        away = Readiness(
            status="not ready", database="away", submissions_frozen=None, plugins_failed=tuple(failures)
        )
        return answer(away, 503)
    return answer(
        Readiness(status="ready", database="ok", submissions_frozen=frozen, plugins_failed=tuple(failures))
    )
