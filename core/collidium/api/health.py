"""``/healthz`` (the process runs) and ``/readyz`` (it can do its work)."""

from __future__ import annotations

import asyncio

from quart import Blueprint, Response
from quart_schema import document_response, operation_id

from collidium import __version__
from collidium.api import readiness
from collidium.api.answers import answer
from collidium.api.context import parts, platform
from collidium.records import Health, Readiness

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
@operation_id("health")
@document_response(Health)
@document_response(Health, 503)
async def healthz() -> Response:
    """Whether the process runs, and takes requests: 503 for a server that is about to stop."""
    stopping = parts().is_stopping
    state = Health(status="stopping" if stopping else "ok", version=__version__)
    return answer(state, 503 if stopping else 200)


@blueprint.get("/readyz")
@operation_id("ready")
@document_response(Readiness)
@document_response(Readiness, 503)
async def readyz() -> Response:
    """Whether the server can do its work now, and which part of it is away; also plugins that failed to load.

    Storage and scoring are asked every few seconds at most.
    """
    frozen, storage, scoring = await asyncio.gather(
        readiness.frozen(), parts().storage.answers(), parts().scoring.answers()
    )
    is_ready = frozen is not None and storage and scoring and not parts().is_stopping
    state = Readiness(
        status="stopping" if parts().is_stopping else "ready" if is_ready else "not ready",
        database="away" if frozen is None else "ok",
        storage="ok" if storage else "away",
        scoring="ok" if scoring else "away",
        submissions_frozen=frozen,
        plugins_failed=tuple(platform().plugins.failures),
    )
    return answer(state, 200 if is_ready else 503)
