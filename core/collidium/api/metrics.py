"""``/metrics``: counters for Prometheus, over all server processes that share the port."""

from __future__ import annotations

import functools
import os
import time

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from quart import Quart, Response, g, request
from quart_schema import hide

from collidium.api.authentication import require_metrics_token

REQUESTS = Counter("collidium_http_requests", "HTTP requests answered.", ["method", "route", "status"])
DURATION = Histogram(
    "collidium_http_request_seconds",
    "Time from a request's first byte to its answer.",
    ["route"],
    buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300),
)
#: Any other word may stand where the method does, and each would be a series of its own.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

SUBMISSIONS = Counter("collidium_submissions", "Submissions kept.", ["task"])
SIMULATIONS = Counter("collidium_simulation_orders", "Simulation requests answered.", ["answer"])


def install(app: Quart) -> None:
    """Count every request, by route and not by path, so that the number of series stays bounded."""

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
        return Response(generate_latest(_registry()), content_type=CONTENT_TYPE_LATEST)


@functools.cache
def _series(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """Look up once what every request of its kind counts in."""
    return REQUESTS.labels(method, route, status), DURATION.labels(route)


def _registry() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    return registry
