"""A server process: serves HTTP and does background work, or does background work only."""

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
from collidium.challenges import arrivals, tasklist, truth_in_use
from collidium.contracts.executor import Executor
from collidium.contracts.identity import IdentityUnavailable
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.files import data_directory
from collidium.model_runs import model_files
from collidium.organising import closing
from collidium.platform import Platform
from collidium.runtime import logs, metrics, subprocesses
from collidium.runtime.interrupts import Noting
from collidium.server import protocol
from collidium.settings import Settings, forget_secrets, without_password
from collidium.submissions import model_runner, rescoring, uploads

logger = logging.getLogger(__name__)

#: Maximum number of connections that wait to be accepted.
BACKLOG = 1024
#: Time for requests in progress to finish when the server stops.
GRACE_SECONDS = 30.0
#: Longer than clients keep idle connections, so that none is closed while a request arrives.
KEEP_ALIVE_SECONDS = 75.0
INTERVAL_SECONDS = 3600.0


def serve_here(
    settings: Settings,
    listeners: Sequence[socket.socket],
    announce: Callable[[], None],
    *,
    checks_hub: bool,
) -> None:
    """Serve from this process; call ``announce`` when ready. Takes over the listeners.

    Stops at SIGTERM and SIGINT, and if it is a worker, when its supervisor ends. With ``checks_hub``, logs a
    warning if the hub does not respond. Raises ConfigurationError if the server cannot start.
    """
    log_plugin_errors()
    hide_secrets()
    asyncio.run(_serve(settings, listeners, announce, checks_hub))


async def _serve(
    settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None], checks_hub: bool
) -> None:
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(tasklist.open_platform(settings))
        if multiprocessing.parent_process() is None:
            await check_shared(platform)
        if checks_hub:
            await stack.enter_async_context(in_background(_warn_without_hub(platform)))
        app = create_app(settings, platform.plugins)
        background = background_work if settings.follow_requests else simulations.serving
        await stack.enter_async_context(background(platform))
        await _answer(platform, app, listeners, announce)


async def _answer(
    platform: Platform, app: Quart, listeners: Sequence[socket.socket], announce: Callable[[], None]
) -> None:
    """Serve HTTP requests until the process receives a signal to stop."""
    numbers = [listener.fileno() for listener in listeners]
    settings = platform.settings
    config = hypercorn_config(listeners, settings.log_level)

    async def until_stopped() -> None:
        for number in numbers:
            # Hypercorn makes them inheritable: then a plugin's command could hold the port after the server.
            os.set_inheritable(number, False)
        _freeze_gc()
        announce()
        await stop_requested(settings.stop_delay_seconds)
        probes.is_stopping = True
        # Close each connection after its next response, so that none is closed while a request arrives.
        config.keep_alive_max_requests = 0
        await asyncio.sleep(settings.stop_delay_seconds)
        platform.watching.stopping.set()

    probes = context.set_platform(app, platform)
    served = HubPort(app, settings.hub_port) if settings.hub_port and len(listeners) > 1 else app
    async with (
        in_background(metrics.keep_sampling(database.occupancy)),
        in_background(probes.scoring.is_available()),  # logs a warning without an executor
    ):
        await serve(served, config, shutdown_trigger=until_stopped)


async def _warn_without_hub(platform: Platform) -> None:
    """Log a warning if the hub does not respond: the server starts without it."""
    settings = platform.settings
    if settings.hub_url:
        try:
            await platform.identities.check()
        except IdentityUnavailable as error:
            logger.warning(
                "the hub at %s does not respond: sign-ins, datasets, downloads and publication fail until it "
                "does (%s)",
                without_password(settings.hub),
                error,
            )


async def check_shared(platform: Platform) -> None:
    """Raise ConfigurationError if the storage cannot be used; log processes with other settings."""
    own = platform.secrets.fingerprint(platform.settings)
    for name, others in (await simulations.other_settings(own)).items():
        logger.error("another %s than this process has: %s", name, ", ".join(others))
    try:
        await platform.storage.check()
    except StorageUnavailable as error:
        raise ConfigurationError(f"the storage cannot be used: {error}") from None


def hide_secrets() -> None:
    """Hide the secrets in the environment and memory of this process from scoring workers."""
    forget_secrets()
    subprocesses.hide_memory()


def _freeze_gc() -> None:
    """Enable garbage collection, but not of existing objects, which would stall requests.

    It is disabled until now, as it would take a twelfth of the start to find a few thousand objects.
    """
    gc.freeze()
    gc.enable()


def log_plugin_errors() -> None:
    """Log errors of plugins, which commands do not log by default."""
    logging.getLogger("collidium.plugins").setLevel(logging.NOTSET)


def hypercorn_config(listeners: Sequence[socket.socket], log_level: str) -> Config:
    """Return the configuration of Hypercorn for listening sockets, with the log of the platform."""
    protocol.install()
    config = protocol.ListeningConfig()
    # Not duplicates, so that new connections are refused as soon as Hypercorn closes them.
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

    In a worker, return at SIGTERM or when its supervisor has ended; its supervisor handles SIGINT. The caller
    begins to stop ``delay`` seconds later.
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
        Noting().__enter__()  # for good: a handler of a request must not take the second for a plugin's
    else:
        loop.remove_reader(supervisor.sentinel)
    # Hypercorn may wait for connections without a limit: then the kernel ends the process.
    signal.alarm(int(delay + GRACE_SECONDS) + 5)


@asynccontextmanager
async def background_work(platform: Platform) -> AsyncIterator[None]:
    """Do the platform's background work while the context lasts; any number of processes may at once.

    Raises :class:`~collidium.errors.ConfigurationError` if the chosen runner cannot run jobs.
    """
    platform.runner.check()
    async with (
        in_background(_prune_hourly(platform)),
        in_background(truth_in_use.describe_earlier(platform)),
        outbox.delivering(platform.settings, platform.secrets),
        simulations.following(platform),
        closing.keeping_dates(platform),
        model_runner.evaluating(platform),
        rescoring.rescoring_in_background(platform),
    ):
        yield


def follow(settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]) -> None:
    """Do background work until SIGTERM or SIGINT; call ``announce`` when started.

    Serves metrics and health at the listeners, if any, and takes them over. Raises ConfigurationError if it
    cannot start.
    """
    logs.configure(settings.log_level, settings.log_format)
    log_plugin_errors()
    hide_secrets()
    asyncio.run(_follow(settings, listeners, announce))


async def _follow(
    settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]
) -> None:
    async with tasklist.open_platform(settings) as platform:
        await check_shared(platform)
        async with in_background(_warn_without_hub(platform)), background_work(platform):
            if listeners:
                await _answer(platform, create_monitor(), listeners, announce)
                return
            announce()
            await stop_requested()


def score(settings: Settings) -> None:
    """Run calls of the servers' executor until SIGTERM or SIGINT.

    Raises ConfigurationError if it cannot start, and Unavailable without a scheduler.
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
async def in_background(work: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run ``work`` in the background while the context lasts."""
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
        except Exception:  # tried again in the next hour
            logger.warning("old records could not be deleted; they will be later", exc_info=True)


async def prune(platform: Platform, moment: datetime) -> None:
    """Delete records and files that have expired at ``moment``."""
    settings = platform.settings
    before = moment - timedelta(days=settings.retention_days)
    await outbox.prune(before)
    await model_files.sweep(platform.storage, before)
    await arrivals.prune(before)
    await sso.prune(moment)
    await simulations.sweep(platform)
    await uploads.prune(moment)
    kept_until = (moment - uploads.AGE).timestamp()
    await asyncio.to_thread(data_directory.sweep_old, settings, before.timestamp(), kept_until)
