"""The Prometheus metrics of this process. ``/metrics`` adds those that it reads from the database.

Alert rules (``deploy/prometheus``) and dashboards depend on names and labels. Labels must have few values: no
account, request or address chosen by a client.

The module is imported when something first counts: prometheus_client takes 20 ms that clients do not need.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Final, ParamSpec, TypeVar

from prometheus_client import Counter, Gauge, Histogram

P = ParamSpec("P")
T = TypeVar("T")

_QUICK: Final = (0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300)
_SLOW: Final = (0.5, 2, 10, 30, 60, 300, 900, 3600)
#: Seconds between two updates of the gauges.
_SAMPLING_SECONDS: Final = 2.0

REQUESTS = Counter("collidium_http_requests", "HTTP requests answered.", ["method", "route", "status"])
DURATION = Histogram(
    "collidium_http_request_seconds",
    "Time from a request's first byte to its answer.",
    ["route"],
    buckets=_QUICK,
)
SUBMISSIONS = Counter("collidium_submissions", "Submissions kept.", ["task"])
MODELS_FAILED = Counter("collidium_models_failed", "Models that ended without scores.", ["task", "code"])
SIMULATIONS = Counter("collidium_simulation_orders", "Simulation requests answered.", ["answer"])
SIMULATIONS_ENDED = Counter(
    "collidium_simulations_ended", "Simulation requests that ended.", ["runner", "state"]
)
SCORING = Histogram("collidium_scoring_seconds", "Time to score a file.", ["task"], buckets=_SLOW)
SCORED_ROWS = Counter("collidium_scored_rows", "Rows of predictions that were scored.", ["task"])
SCORING_FAILURES = Counter(
    "collidium_scoring_failures",
    "Files that were not scored: invalid ones, and those that the task, its limits or the time ended.",
    ["task", "cause"],
)
SCORING_NOW = Gauge(
    "collidium_scoring_in_progress", "Files that are being scored.", multiprocess_mode="livesum"
)
WEBHOOKS = Counter("collidium_webhook_attempts", "Attempts to deliver a webhook.", ["outcome"])
STORAGE = Histogram(
    "collidium_storage_seconds", "Time of operations of the storage.", ["operation"], buckets=_QUICK
)
STORAGE_FAILURES = Counter("collidium_storage_failures", "Operations that the storage failed.", ["operation"])
HUB = Histogram("collidium_hub_call_seconds", "Time of calls of the hub.", ["call"], buckets=_QUICK)
HUB_FAILURES = Counter("collidium_hub_failures", "Calls that the hub did not answer.", ["call"])
CACHE = Counter("collidium_cache_lookups", "Look-ups in caches of a server process.", ["cache", "result"])
CONNECTIONS = Gauge(
    "collidium_database_connections",
    "Connections to PostgreSQL of all processes.",
    ["state"],
    multiprocess_mode="livesum",
)
MEMORY = Gauge(
    "collidium_memory_bytes",
    "Resident memory of server processes, and of what they started: scoring, local jobs.",
    ["processes"],
    multiprocess_mode="livesum",
)


@contextmanager
def timed(seconds: Histogram, failures: Counter, label: str, failing: type[Exception]) -> Iterator[None]:
    """Observe the duration of the context, and count errors of the type ``failing``."""
    started = perf_counter()
    try:
        yield
    except failing:
        failures.labels(label).inc()
        raise
    finally:
        seconds.labels(label).observe(perf_counter() - started)


def measure(part: object, operations: Iterable[str], failing: type[Exception]) -> None:
    """Wrap these methods of a storage so that they are timed."""
    for operation in operations:
        measured = _measured(getattr(part, operation), operation, failing)
        object.__setattr__(part, operation, measured)  # also of a frozen dataclass


def _measured(
    method: Callable[P, Awaitable[T]], operation: str, failing: type[Exception]
) -> Callable[P, Awaitable[T]]:
    async def measured(*arguments: P.args, **options: P.kwargs) -> T:
        with timed(STORAGE, STORAGE_FAILURES, operation, failing):
            return await method(*arguments, **options)

    return measured


async def keep_sampling(connections: Callable[[], Mapping[str, int]]) -> None:
    """Update the gauges of this process until cancelled; ``connections`` returns its pool's by state."""
    while True:
        for state, number in connections().items():
            CONNECTIONS.labels(state).set(number)
        own, started = await asyncio.to_thread(resident_bytes)
        MEMORY.labels("server").set(own)
        MEMORY.labels("started").set(started)
        await asyncio.sleep(_SAMPLING_SECONDS)


def resident_bytes() -> tuple[int, int]:
    """Return the resident memory of this process and of its descendants. Linux only."""
    return _resident(os.getpid()), sum(map(_resident, _descendants(os.getpid())))


def _descendants(process: int) -> Iterator[int]:
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            for child in children.read_text().split():
                yield int(child)
                yield from _descendants(int(child))


def _resident(process: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
