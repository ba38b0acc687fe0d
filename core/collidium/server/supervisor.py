"""``collidium serve`` and ``collidium worker``: admin token, sockets, and the server's worker processes.

Several worker processes share the sockets. They are started and stopped together, and one that dies is
replaced.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import resource
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from types import FrameType
from typing import Final

import click
from prometheus_client.multiprocess import mark_process_dead
from pydantic import SecretStr

from collidium.challenges import tasklist
from collidium.errors import CollidiumError, ConfigurationError
from collidium.files.data_directory import make_secret_file, metrics_directory
from collidium.files.held import held_directory
from collidium.runtime import logs, subprocesses
from collidium.server.worker import BACKLOG, GRACE_SECONDS, check_shared, follow, hide_secrets, serve_here
from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: What a server that simulates nothing says when it starts.
REAL_EVENTS: Final = (
    "Orders are for a mock that makes no events. Real ones, after `pip install '.[sim]'`: "
    "PLATFORM_RUN_MODE=real PLATFORM_RUNNER=local collidium serve"
)
#: Seconds before a worker is started after one that ended before it was ready; doubled each time.
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0

_spawn = multiprocessing.get_context("spawn")


class Worker:
    """A worker process, and the pipe on which it reports that it is ready."""

    def __init__(
        self, settings: Settings, listeners: Sequence[socket.socket], *, checks_hub: bool = False
    ) -> None:
        self._reports, its_end = _spawn.Pipe(duplex=False)
        self.ready = False
        self.process: SpawnProcess = _spawn.Process(
            target=_work,
            name=subprocesses.TiedName("worker"),
            args=(settings, listeners, its_end, checks_hub),
        )
        self.process.start()
        its_end.close()
        self._stop_seconds = settings.stop_delay_seconds + GRACE_SECONDS + 10

    @property
    def watched(self) -> list[Connection | int]:
        """What becomes readable when the worker is ready or has ended."""
        return [self.process.sentinel] if self.ready else [self.process.sentinel, self._reports]

    def read_report(self) -> None:
        """Set :attr:`ready` if the worker has reported it."""
        if not self.ready and self._reports.poll():
            with suppress(EOFError):
                self.ready = bool(self._reports.recv_bytes(1))

    def join(self) -> None:
        """Wait until the process has ended; kill it if it takes too long."""
        self.process.join(self._stop_seconds)
        if self.process.is_alive():
            logger.error("worker %s does not stop and is killed", self.process.pid)
            self.process.kill()
            self.process.join()
        self._reports.close()


class Slot:
    """A slot for a worker: holds it, or waits until the next one may be started."""

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self.worker: Worker | None = start()
        self._due = 0.0
        self._failures = 0

    @property
    def is_ready(self) -> bool:
        return self.worker is not None and self.worker.ready

    @property
    def pause(self) -> float | None:
        """Seconds until the next worker may be started; None if there is a worker."""
        return None if self.worker is not None else max(0.0, self._due - monotonic())

    def update(self, *, proven: bool) -> None:
        """Replace a worker that has ended.

        A worker that ends before it is ready is replaced after a pause if workers are ``proven`` to start, or
        if a signal killed it. Otherwise this raises CollidiumError.
        """
        if self.worker is None:
            self._restart()
            return
        self.worker.read_report()
        pid, code = self.worker.process.pid, self.worker.process.exitcode
        if code is None:
            return
        was_ready = self.worker.ready
        if not was_ready and not proven and code >= 0:
            raise CollidiumError(f"a worker ended with {code} before it was ready")
        self.worker.join()
        mark_process_dead(pid)  # type: ignore[no-untyped-call]  # removes its gauges
        self.worker = None
        if was_ready:
            logger.error("worker %s ended with %s and is replaced", pid, code)
            self._failures = 0
            self._restart()
        else:
            self._pause(f"worker {pid} ended with {code} before it was ready")

    def _restart(self) -> None:
        if self._due > monotonic():
            return
        try:
            self.worker = self._start()
        except OSError as error:
            self._pause(f"no worker can be started: {error}")

    def _pause(self, reason: str) -> None:
        seconds = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self._due = monotonic() + seconds
        logger.error("%s; the next is tried in %g s", reason, seconds)


def supervise(settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]) -> None:
    """Keep ``settings.workers`` processes serving until SIGTERM or SIGINT; ``announce`` when all are ready.

    A worker that dies later is always replaced. Before all have been ready once, a worker that ends by itself
    stops the server with CollidiumError.
    """
    _start_tracker()
    with _stop_signal() as stopped, _shared_metrics(settings):
        slots: list[Slot] = []
        announced = False
        try:
            checks = iter([True])  # the first worker checks the hub, those that replace it do not
            slots += (
                Slot(lambda: Worker(settings, listeners, checks_hub=next(checks, False)))
                for _ in range(settings.workers)
            )
            while not _wait(slots, stopped):
                for slot in slots:
                    slot.update(proven=announced)
                if not announced and all(slot.is_ready for slot in slots):
                    announced = True
                    announce()
        finally:
            # Once the workers have closed their copies, too, new connections are refused.
            for listener in listeners:
                listener.close()
            workers = [slot.worker for slot in slots if slot.worker is not None]
            for worker in workers:
                worker.process.terminate()
            for worker in workers:
                worker.join()


def _wait(slots: list[Slot], stopped: int) -> bool:
    """Wait for an event of a worker, the end of a pause, or the stop signal; return whether to stop."""
    watched: list[Connection | int] = [stopped]
    for slot in slots:
        if slot.worker is not None:
            watched += slot.worker.watched
    pauses = [slot.pause for slot in slots if slot.pause is not None]
    return stopped in wait(watched, min(pauses, default=None))


@contextmanager
def _shared_metrics(settings: Settings) -> Iterator[None]:
    """Make the workers share their metrics, so that each can serve those of all at ``/metrics``."""
    with held_directory(metrics_directory(settings)) as directory:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
        yield


@contextmanager
def _stop_signal() -> Iterator[int]:
    """Return a file descriptor that becomes readable at SIGTERM or SIGINT."""
    reading, writing = os.pipe()

    def notify(number: int, frame: FrameType | None) -> None:
        os.write(writing, b"x")

    before = {number: signal.signal(number, notify) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield reading
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _start_tracker() -> None:
    """Start multiprocessing's resource tracker with an empty environment, so that it knows no secrets."""
    environment = dict(os.environ)
    os.environ.clear()
    try:
        resource_tracker.ensure_running()
    finally:
        os.environ.update(environment)


def _work(
    settings: Settings,
    listeners: Sequence[socket.socket],
    ready: Connection,
    checks_hub: bool,
) -> None:
    """Run a worker process."""
    # Ctrl-C reaches the whole process group; the supervisor passes it on as SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure(settings.log_level, settings.log_format)
    try:
        serve_here(settings, listeners, lambda: ready.send_bytes(b"1"), checks_hub=checks_hub)
    except CollidiumError as error:
        logger.error("%s", error.detail)
        raise SystemExit(error.exit_code) from None


def run(settings: Settings) -> None:
    """Serve until stopped. Raises ConfigurationError if the server cannot start."""
    logs.configure(settings.log_level, settings.log_format)
    settings = ensure_admin_token(settings)
    _allow_many_connections()
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in listeners_of(settings)]
        # The actual ports, for the addresses of the local hub.
        port, *hub_port = [listener.getsockname()[1] for listener in listeners]
        settings = settings.model_copy(update={"port": port, "hub_port": hub_port[0] if hub_port else 0})

        def announce() -> None:
            hub = f"\nIts hub is at {settings.hub_root_url}" if settings.hub_root_url else ""
            mock = f"\n{REAL_EVENTS}" if settings.run_mode == "mock" else ""
            click.echo(f"Collidium is at {settings.base_url}{hub}{mock}")

        if settings.workers == 1:
            serve_here(settings, listeners, announce, checks_hub=True)
        else:
            hide_secrets()
            asyncio.run(_check(settings))
            gc.enable()
            supervise(settings, listeners, announce)


def run_worker(settings: Settings, announce: Callable[[str], None]) -> None:
    """Do background work until stopped; ``announce`` gets a message. Raises ConfigurationError."""
    logs.configure(settings.log_level, settings.log_format)
    with ExitStack() as stack:
        listeners, message = [], "Following requests."
        if settings.worker_port is not None:
            advice = "choose another with PLATFORM_WORKER_PORT, or 0 for any"
            listener = listen(settings.host, settings.worker_port, settings.body_timeout_seconds, advice)
            listeners.append(stack.enter_context(listener))
            message += f" Metrics are at http://{settings.host}:{listener.getsockname()[1]}/metrics"
        follow(settings, listeners, lambda: announce(message))


def _allow_many_connections() -> None:
    """Raise the limit of open files to its maximum: each connection is an open file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _check(settings: Settings) -> None:
    """Open the platform once before the workers do: to migrate the schema, and to report errors once."""
    async with tasklist.open_platform(settings) as platform:
        await check_shared(platform)
        if settings.follow_requests:
            platform.runner.check()


FILE = "admin-token"


def ensure_admin_token(settings: Settings) -> Settings:
    """Return settings with an admin token: the one that is set, else that of the data directory.

    With SQLite the token is created if absent, and its path is printed. With PostgreSQL it must be set, which
    the platform checks when it opens. Raises ConfigurationError for an empty file.
    """
    if settings.admin_token is not None or not settings.sqlite_file:
        return settings
    path = settings.data_dir / FILE
    if make_secret_file(path, secrets.token_urlsafe(32)):
        click.echo(f"A new admin token is in {path}", err=True)
        click.echo("To fill this server with datasets, truth and baselines: collidium seed", err=True)
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ConfigurationError(f"the admin token in {path} is empty; delete the file to get a new one")
    return settings.model_copy(update={"admin_token": SecretStr(token)})


LAST_PORT = 65535


def listeners_of(settings: Settings) -> Iterator[socket.socket]:
    """Yield the server's socket, and that of the local hub, if it has one."""
    seconds = settings.body_timeout_seconds
    yield listen(settings.host, settings.port, seconds)
    if settings.hub_port == 0 or settings.hub_url:
        return
    port = settings.hub_port or (settings.port and settings.port + 1)
    advice = "the hub's; choose another with PLATFORM_HUB_PORT, or 0 for none"
    if port > LAST_PORT:  # the resolver would wrap it around
        raise ConfigurationError(f"there is no port {port} ({advice})")
    yield listen(settings.host, port, seconds, advice)


def listen(
    host: str, port: int, seconds: float, advice: str = "choose another with --port, or 0 for any"
) -> socket.socket:
    """Return a listening socket; port 0 chooses a free port. Raises ConfigurationError.

    Linux closes its connections when the client has read nothing for ``seconds``.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}: {error.strerror or error}") from error
    try:
        # A restart need not wait for the connections of the last server to time out.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # A timeout of sending could not distinguish a slow reader from one that does not read.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on port {port} of {host}: {error.strerror or error} ({advice})"
        ) from error
    return listener
