"""Monitoring: ``/healthz`` (liveness), ``/readyz`` (readiness) and ``/metrics`` (Prometheus)."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from quart import Blueprint, Quart, Response, g, request
from quart_schema import document_response, hide, operation_id
from tortoise.timezone import now

from collidium import __version__, operations, outbox
from collidium.api import context
from collidium.api.answers import answer
from collidium.api.authentication import require_metrics_token
from collidium.api.context import platform, probes
from collidium.model_runs import model_runners
from collidium.records import Health, Readiness
from collidium.runtime import release
from collidium.runtime.metrics import DURATION, REQUESTS
from collidium.simulations import followers, reports
from collidium.submissions import waiting

#: Other methods are counted together, because each would be a series of its own.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Followers report their presence every five seconds.
FOLLOWS = timedelta(seconds=30)
blueprint = Blueprint("health", __name__)


def install(app: Quart) -> None:
    """Count requests by route rather than path, which bounds the number of series."""

    @app.after_request
    async def count(response: Response) -> Response:
        route = request.url_rule.rule if request.url_rule else "none"
        method = request.method if request.method in METHODS else "other"
        requests, duration = _series(method, route, response.status_code)
        requests.inc()
        duration.observe(time.perf_counter() - g.started)
        return response

    @app.get("/metrics")
    @hide
    async def metrics() -> Response:
        await require_metrics_token()
        text = generate_latest(_counted()) + generate_latest(await _known_now())
        return Response(text, content_type=CONTENT_TYPE_LATEST)


@functools.cache
def _series(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """Return the counter and histogram of a kind of requests."""
    return REQUESTS.labels(method, route, status), DURATION.labels(route)


def _counted() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    return registry


class _Families(Collector):
    """Gauges that are read for one scrape."""

    def __init__(self) -> None:
        self._families: list[GaugeMetricFamily] = []

    def add(self, name: str, help_text: str, value: float) -> None:
        self._families.append(GaugeMetricFamily(f"collidium_{name}", help_text, value=value))

    def add_each(
        self, name: str, help_text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]
    ) -> None:
        family = GaugeMetricFamily(f"collidium_{name}", help_text, labels=labels)
        for key, value in values:
            family.add_metric(key, value)
        self._families.append(family)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        return iter(self._families)


async def _known_now() -> CollectorRegistry:
    """Return gauges that all processes share; those of the database are missing if it is unavailable."""
    families = _Families()
    frozen, storage, scoring = await asyncio.gather(
        context.frozen(), probes().storage.is_available(), probes().scoring.is_available()
    )
    ready = [(["database"], frozen is not None), (["storage"], storage), (["scoring"], scoring)]
    families.add_each("ready", "Whether a part of the platform answers.", ["part"], ready)
    free = await asyncio.to_thread(lambda: shutil.disk_usage(platform().settings.data_dir).free)
    families.add("disk_free_bytes", "Free space where the data directory is.", free)
    if frozen is not None:
        families.add("frozen", "Whether simulation requests are frozen.", frozen)
        await _add_backlogs(families)
    registry = CollectorRegistry()
    registry.register(families)
    return registry


async def _add_backlogs(families: _Families) -> None:
    unfinished = await reports.backlog()
    families.add_each(
        "simulation_requests",
        "Unfinished simulation requests.",
        ["runner", "state"],
        unfinished.requests.items(),
    )
    families.add(
        "simulations_overdue_seconds",
        "How long the simulation request waits for a follower that is due for longest.",
        unfinished.overdue_seconds,
    )
    families.add("leases", "Simulation requests that a follower works on.", unfinished.leased)
    present = [one for one in await followers() if one.looked_at > now() - FOLLOWS]
    families.add("followers", "Processes that follow simulation requests.", len(present))
    families.add("model_runners", "Processes that run models.", await model_runners.number())
    models = await model_runners.waiting()
    families.add("models_waiting", "Models that wait for a process that runs them.", models.number)
    families.add(
        "models_waiting_seconds",
        "How long the model waits that waits for longest.",
        (now() - models.oldest_at).total_seconds() if models.oldest_at else 0,
    )
    files = await waiting.number()
    families.add("files_waiting", "Files that rescorings and ends of challenges wait for.", files.waiting)
    families.add("files_not_retried", "Files among them that are no longer tried again.", files.not_retried)
    backup = await operations.last_backup()
    families.add(
        "last_backup_timestamp_seconds",
        "When the last whole backup was made; 0 before the first.",
        backup.timestamp() if backup else 0,
    )
    families.add("webhooks_pending", "Webhook deliveries still to be made.", await outbox.backlog())
    families.add(
        "webhooks_overdue_seconds",
        "How long the webhook delivery waits that is due for longest.",
        await outbox.overdue_seconds(),
    )


@blueprint.get("/healthz")
@operation_id("health")
@document_response(Health)
@document_response(Health, 503)
async def healthz() -> Response:
    """Liveness: 503 if the server is about to stop."""
    stopping = probes().is_stopping
    state = Health(status="stopping" if stopping else "ok", version=__version__, commit=release.commit())
    return answer(state, 503 if stopping else 200)


@blueprint.get("/readyz")
@operation_id("ready")
@document_response(Readiness)
@document_response(Readiness, 503)
async def readyz() -> Response:
    """Readiness of the server and its components, and plugins that failed to load.

    Storage and scoring are checked at most every few seconds.
    """
    frozen, models_not_run, storage, scoring = await asyncio.gather(
        context.frozen(),
        context.models_not_run(),
        probes().storage.is_available(),
        probes().scoring.is_available(),
    )
    is_ready = frozen is not None and storage and scoring and not probes().is_stopping
    state = Readiness(
        status="stopping" if probes().is_stopping else "ready" if is_ready else "not ready",
        database="away" if frozen is None else "ok",
        storage="ok" if storage else "away",
        scoring="ok" if scoring else "away",
        models="ok" if models_not_run == "" else "away",
        submissions_frozen=frozen,
        plugins_failed=tuple(platform().plugins.failures),
    )
    return answer(state, 200 if is_ready else 503)
