"""A process that serves, follows requests, delivers webhooks and prunes, or that does all but serve."""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart
from tortoise.timezone import now

from collidium import database, outbox, plugins, simulations
from collidium.accounts import sso
from collidium.api import context
from collidium.api.app import create_app, create_monitor
from collidium.api.mounting import HubPort
from collidium.benchmarks import closing
from collidium.benchmarks.submissions import evaluating, model_files, rescoring, uploads
from collidium.contracts.executor import Executor
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.files import data_directory
from collidium.platform import Platform
from collidium.runtime import logs, metrics, subprocesses
from collidium.server import protocol
from collidium.settings import Settings, forget_secrets

#: Connections that may wait to be accepted.
BACKLOG = 1024

#: How long requests in flight may take when the server stops.
GRACE_SECONDS = 30.0

#: Longer than clients keep idle connections, so that none is closed under a request on its way.
KEEP_ALIVE_SECONDS = 75.0
INTERVAL_SECONDS = 3600.0
logger = logging.getLogger(__name__)


def serve_here(settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]) -> None:
    """Serve from this process; ``announce`` is called when it is ready. Takes the listeners over.

    Stops at SIGTERM and SIGINT, and when the process that started it as a worker is gone. Raises
    ConfigurationError when it cannot start.
    """
    log_plugin_errors()
    hide_secrets()
    asyncio.run(_serve(settings, listeners, announce))


async def _serve(
    settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]
) -> None:
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(Platform.open(settings))
        if multiprocessing.parent_process() is None:
            await check_shared(platform)
        app = create_app(settings, platform.plugins)
        at_work = background_work if settings.follow_requests else simulations.serving
        await stack.enter_async_context(at_work(platform))
        await _answer(platform, app, listeners, announce)


async def _answer(
    platform: Platform, app: Quart, listeners: Sequence[socket.socket], announce: Callable[[], None]
) -> None:
    """Answer requests until the process is to stop."""
    numbers = [listener.fileno() for listener in listeners]
    settings = platform.settings
    config = hypercorn_config(listeners, settings.log_level)

    async def until_stopped() -> None:
        for number in numbers:
            # Hypercorn makes them inheritable: a plugin's command would hold the port longer than the server.
            os.set_inheritable(number, False)
        _freeze_gc()
        announce()
        await stop_requested(settings.stop_delay_seconds)
        probes.is_stopping = True
        # Proxies keep no connection that would be closed under a request on its way.
        config.keep_alive_max_requests = 0
        await asyncio.sleep(settings.stop_delay_seconds)
        platform.watching.stopping.set()

    probes = context.set_platform(app, platform)
    served = HubPort(app, settings.hub_port) if settings.hub_port and len(listeners) > 1 else app
    async with (
        in_background(metrics.keep_sampling(database.occupancy)),
        in_background(_look_for_executor(probes)),
    ):
        await serve(served, config, shutdown_trigger=until_stopped)


async def _look_for_executor(probes: context.Probes) -> None:
    """Log an executor that is away: a server starts without it, and all but scoring works."""
    await probes.scoring.is_available()


async def check_shared(platform: Platform) -> None:
    """Raise ConfigurationError where the storage cannot be used; log who has other settings."""
    own = platform.secrets.fingerprint(platform.settings)
    for name, others in (await simulations.other_settings(own)).items():
        logger.error("another %s than this process has: %s", name, ", ".join(others))
    try:
        await platform.storage.check()
    except StorageUnavailable as error:
        raise ConfigurationError(f"the storage cannot be used: {error}") from None


def hide_secrets() -> None:
    """Hide the secrets of the settings, and what is in the memory of this process, from scoring workers."""
    forget_secrets()
    subprocesses.hide_memory()


def _freeze_gc() -> None:
    """Exempt what exists by now from garbage collection, which would stall requests.

    Nothing is collected before: it would take a twelfth of the start to find a few thousand objects.
    """
    gc.freeze()
    gc.enable()


def log_plugin_errors() -> None:
    """Log what a broken plugin raised: the command is quiet about it, the server's log is where to look."""
    logging.getLogger("collidium.plugins").setLevel(logging.NOTSET)


def hypercorn_config(listeners: Sequence[socket.socket], log_level: str) -> Config:
    """Hypercorn on sockets that listen already; its log lines go with all others."""
    protocol.install()
    config = Config()
    # Not duplicates: when Hypercorn closes them, new connections are refused, not left waiting.
    config.bind = [f"fd://{listener.detach()}" for listener in listeners]
    config.backlog = BACKLOG
    config.graceful_timeout = GRACE_SECONDS
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.include_server_header = False
    config.loglevel = log_level.upper()
    config.errorlog = logging.getLogger("hypercorn.error")
    return config


async def stop_requested(delay: float = 0) -> None:
    """Return at the first SIGTERM or SIGINT; a second SIGINT then ends the process at once.

    The caller begins to stop after ``delay`` seconds.
    A worker heeds SIGTERM alone (Ctrl-C reaches its supervisor, too), and the end of its supervisor.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        loop.add_signal_handler(signal.SIGINT, stop.set)
    else:
        loop.add_reader(supervisor.sentinel, stop.set)
    await stop.wait()
    if supervisor is None:
        loop.remove_signal_handler(signal.SIGINT)
    else:
        loop.remove_reader(supervisor.sentinel)
    # Hypercorn may wait for connections without a limit; the kernel then ends the process.
    signal.alarm(int(delay + GRACE_SECONDS) + 5)


@asynccontextmanager
async def background_work(platform: Platform) -> AsyncIterator[None]:
    """Follow requests and deliver webhooks while the context lasts; any number of processes may.

    Raises :class:`~collidium.errors.ConfigurationError` where the runner that was chosen can run nothing.
    """
    platform.runner.check()
    async with (
        in_background(_prune_hourly(platform)),
        outbox.delivering(platform.settings, platform.secrets),
        simulations.following(platform),
        closing.keeping_dates(platform),
        evaluating.evaluating(platform),
        rescoring.rescoring_in_background(platform),
    ):
        yield


def follow(settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]) -> None:
    """Work until SIGTERM or SIGINT; ``announce`` is called when it has begun.

    Metrics and health are answered at the listeners, if any, which it takes over.

    Raises ConfigurationError when it cannot start.
    """
    logs.configure(settings.log_level, settings.log_format)
    log_plugin_errors()
    hide_secrets()
    asyncio.run(_follow(settings, listeners, announce))


async def _follow(
    settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]
) -> None:
    async with Platform.open(settings) as platform:
        await check_shared(platform)
        async with background_work(platform):
            if listeners:
                await _answer(platform, create_monitor(), listeners, announce)
                return
            announce()
            await stop_requested()


def score(settings: Settings) -> None:
    """Run calls of the servers' executor until SIGTERM or SIGINT.

    Raises ConfigurationError when it cannot start, and Unavailable without a scheduler.
    """
    logs.configure(settings.log_level, settings.log_format)
    log_plugin_errors()
    loaded = plugins.load(settings.plugins_blocked)
    executor = loaded.executors(settings).get(settings.executor)
    storage = loaded.storages(settings).get(settings.storage)
    hide_secrets()
    asyncio.run(_score(executor, storage))


async def _score(executor: Executor, storage: Storage) -> None:
    serving = asyncio.create_task(executor.serve(storage))
    stopping = asyncio.create_task(stop_requested())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
    finally:
        serving.cancel()
        stopping.cancel()
        await asyncio.gather(serving, stopping, return_exceptions=True)
        await executor.close()
        await storage.close()


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do work without an end while the context lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _prune_hourly(platform: Platform) -> None:
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        try:
            await prune(platform, now())
        except Exception:  # of any kind: the next hour may go better
            logger.warning("old records cannot be deleted now", exc_info=True)


async def prune(platform: Platform, moment: datetime) -> None:
    """Delete what is over and, at a moment, as old as the settings say."""
    settings = platform.settings
    before = moment - timedelta(days=settings.retention_days)
    await outbox.prune(before)
    await model_files.sweep(platform.storage, before)
    await closing.prune(before)
    await sso.prune(moment)
    await simulations.sweep(platform)
    await uploads.prune(moment)
    kept_until = (moment - uploads.AGE).timestamp()
    await asyncio.to_thread(data_directory.sweep_old, settings, before.timestamp(), kept_until)
