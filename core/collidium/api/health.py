"""``/healthz`` (the process runs) and ``/readyz`` (it can do its work)."""

from __future__ import annotations

from quart import Blueprint
from quart_schema import document_response, tag
from tortoise.exceptions import BaseORMException

from collidium import __version__, database, operations
from collidium.api.context import platform
from collidium.api.schemas import Health, Readiness

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
@tag(["health"])
@document_response(Health)
async def healthz() -> Health:
    """Whether the process runs."""
    return Health(status="ok", version=__version__)


@blueprint.get("/readyz")
@tag(["health"])
@document_response(Readiness)
@document_response(Readiness, 503)
async def readyz() -> tuple[Readiness, int]:
    """Whether the server can do its work now; also names plugins that failed to load."""
    failures = platform().plugins.failures
    try:
        await database.ping()
        frozen = await operations.is_frozen()
    except (OSError, BaseORMException):
        return Readiness(
            status="not ready", database="away", submissions_frozen=None, plugins_failed=failures
        ), 503
    return Readiness(status="ready", database="ok", submissions_frozen=frozen, plugins_failed=failures), 200
