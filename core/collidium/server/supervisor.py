"""Serves the platform from this machine: admin token, sockets, and one process or several that share them.

Processes are started and stopped together, and one that dies is replaced.
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

from collidium.errors import CollidiumError, ConfigurationError
from collidium.files.data_directory import make_secret_file, metrics_directory
from collidium.files.held import held_directory
from collidium.platform import Platform
from collidium.runtime import logs, subprocesses
from collidium.server.worker import BACKLOG, GRACE_SECONDS, check_shared, follow, hide_secrets, serve_here
from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: Seconds before another worker is tried after one that did not get ready; doubled each time.
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0

_spawn = multiprocessing.get_context("spawn")


class Worker:
    """A server process and the end of a pipe on which it reports that it is ready."""

    def __init__(self, settings: Settings, listeners: Sequence[socket.socket]) -> None:
        self.news, its_end = _spawn.Pipe(duplex=False)
        self.ready = False
        self.process: SpawnProcess = _spawn.Process(
            target=_work, args=(settings, listeners, its_end, os.getpid())
        )
        self.process.start()
        its_end.close()
        self._patience = settings.stop_delay_seconds + GRACE_SECONDS + 10

    @property
    def watched(self) -> list[Connection | int]:
        return [self.process.sentinel] if self.ready else [self.process.sentinel, self.news]

    def hear(self) -> None:
        """Process its report."""
        if not self.ready and self.news.poll():
            self.ready = self._reported_ready()

    def _reported_ready(self) -> bool:
        try:
            return bool(self.news.recv_bytes(1))
        except EOFError:
            return False

    def stop(self) -> None:
        """Ask it to finish what it has begun and to end."""
        self.process.terminate()

    def join(self) -> None:
        """Wait until it has ended; past its time it is killed."""
        self.process.join(self._patience)
        if self.process.is_alive():
            logger.error("worker %s does not stop and is killed", self.process.pid)
            self.process.kill()
            self.process.join()
        self.news.close()


class Place:
    """Where one worker works: it has its worker, or waits until the next one may be tried."""

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
        """Seconds until the next worker may be tried; None when there is one."""
        return None if self.worker is not None else max(0.0, self._due - monotonic())

    def look_after(self, *, proven: bool) -> None:
        """Replace a worker that has died.

        One that ends before it was ready is tried again later where that is ``proven`` to work, or where a
        signal has killed it, and else raises CollidiumError.
        """
        if self.worker is None:
            self._try_again()
            return
        self.worker.hear()
        pid, code = self.worker.process.pid, self.worker.process.exitcode
        if code is None:
            return
        was_ready = self.worker.ready
        if not was_ready and not proven and code >= 0:
            raise CollidiumError(f"a worker ended with {code} before it was ready")
        self.worker.join()
        mark_process_dead(pid)  # type: ignore[no-untyped-call]  # its gauges are of living processes
        self.worker = None
        if was_ready:
            logger.error("worker %s ended with %s and is replaced", pid, code)
            self._failures = 0
            self._try_again()
        else:
            self._wait(f"worker {pid} ended with {code} before it was ready")

    def _try_again(self) -> None:
        if self._due > monotonic():
            return
        try:
            self.worker = self._start()
        except OSError as error:
            self._wait(f"no worker can be started: {error}")

    def _wait(self, reason: str) -> None:
        seconds = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self._due = monotonic() + seconds
        logger.error("%s; the next is tried in %g s", reason, seconds)


def supervise(settings: Settings, listeners: Sequence[socket.socket], announce: Callable[[], None]) -> None:
    """Keep ``settings.workers`` processes serving until SIGTERM or SIGINT; ``announce`` when all are ready.

    A worker that dies later is replaced, again and again if need be. Until all were ready once, one that ends
    by itself before it is ready ends all, with CollidiumError: then the service does not work here.
    """
    _start_tracker()
    with _stop_signal() as stopped, _shared_metrics(settings):
        places: list[Place] = []
        announced = False
        try:
            places += (Place(lambda: Worker(settings, listeners)) for _ in range(settings.workers))
            while not _wait(places, stopped):
                for place in places:
                    place.look_after(proven=announced)
                if not announced and all(place.is_ready for place in places):
                    announced = True
                    announce()
        finally:
            # With the workers' copies the last of it: from now on new connections are refused.
            for listener in listeners:
                listener.close()
            workers = [place.worker for place in places if place.worker is not None]
            for worker in workers:
                worker.stop()
            for worker in workers:
                worker.join()


def _wait(places: list[Place], stopped: int) -> bool:
    """Wait until something happens, or a worker is due; whether it is the signal to stop."""
    watched: list[Connection | int] = [stopped]
    for place in places:
        if place.worker is not None:
            watched += place.worker.watched
    pauses = [place.pause for place in places if place.pause is not None]
    return stopped in wait(watched, min(pauses, default=None))


@contextmanager
def _shared_metrics(settings: Settings) -> Iterator[None]:
    """Let the workers count into one place, so that whichever answers ``/metrics`` knows of all.

    It is held by this process alone: workers end soon after it.
    """
    with held_directory(metrics_directory(settings)) as directory:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
        yield


@contextmanager
def _stop_signal() -> Iterator[int]:
    """A file descriptor that becomes readable at SIGTERM or SIGINT."""
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
    """Start multiprocessing's process that tracks resources, of which there are none, without secrets."""
    environment = dict(os.environ)
    os.environ.clear()
    try:
        resource_tracker.ensure_running()
    finally:
        os.environ.update(environment)


def _work(settings: Settings, listeners: Sequence[socket.socket], ready: Connection, supervisor: int) -> None:
    """A worker's main function."""
    subprocesses.end_with_parent(supervisor)
    # Ctrl-C reaches the whole group of processes; the supervisor passes it on as SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure(settings.log_level, settings.log_format)
    try:
        serve_here(settings, listeners, lambda: ready.send_bytes(b"1"))
    except CollidiumError as error:
        logger.error("%s", error.detail)
        raise SystemExit(error.exit_code) from None


def run(settings: Settings) -> None:
    """Serve until stopped. Raises ConfigurationError when it cannot start."""
    logs.configure(settings.log_level, settings.log_format)
    settings = ensure_admin_token(settings)
    _allow_many_connections()
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in listeners_of(settings)]
        # The real ports: the local hub's addresses are made from them.
        port, *hub_port = [listener.getsockname()[1] for listener in listeners]
        settings = settings.model_copy(update={"port": port, "hub_port": hub_port[0] if hub_port else 0})

        def announce() -> None:
            hub = f"\nIts hub is at {settings.hub_root_url}" if settings.hub_root_url else ""
            click.echo(f"Collidium is at {settings.base_url}{hub}")

        if settings.workers == 1:
            serve_here(settings, listeners, announce)
        else:
            hide_secrets()
            asyncio.run(_rehearse(settings))
            gc.enable()
            supervise(settings, listeners, announce)


def run_worker(settings: Settings, announce: Callable[[str], None]) -> None:
    """Work without serving until stopped; ``announce`` gets what it does. Raises ConfigurationError."""
    logs.configure(settings.log_level, settings.log_format)
    with ExitStack() as stack:
        listeners, said = [], "Following requests."
        if settings.worker_port is not None:
            advice = "choose another with PLATFORM_WORKER_PORT, or 0 for any"
            listener = listen(settings.host, settings.worker_port, settings.body_timeout_seconds, advice)
            listeners.append(stack.enter_context(listener))
            said += f" Metrics are at http://{settings.host}:{listener.getsockname()[1]}/metrics"
        follow(settings, listeners, lambda: announce(said))


def _allow_many_connections() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _rehearse(settings: Settings) -> None:
    """Open the platform before any worker does: what is wrong, or the schema lacks, is seen to once."""
    async with Platform.open(settings) as platform:
        await check_shared(platform)
        if settings.follow_requests:
            platform.runner.check()


FILE = "admin-token"


def ensure_admin_token(settings: Settings) -> Settings:
    """The settings with an admin token: the one that is set, else the data directory's, made when absent.

    With PostgreSQL it has to be set, which the platform checks when it opens.
    Prints where the token is, never the token. Raises ConfigurationError for a file that holds none.
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
    """The server's socket, and the one at whose root the local hub is, unless there is none."""
    seconds = settings.body_timeout_seconds
    yield listen(settings.host, settings.port, seconds)
    if settings.hub_port == 0 or settings.hub_url:
        return
    port = settings.hub_port or (settings.port and settings.port + 1)
    advice = "the hub's; choose another with PLATFORM_HUB_PORT, or 0 for none"
    if port > LAST_PORT:  # the resolver would take the remainder
        raise ConfigurationError(f"there is no port {port} ({advice})")
    yield listen(settings.host, port, seconds, advice)


def listen(
    host: str, port: int, seconds: float, advice: str = "choose another with --port, or 0 for any"
) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises ConfigurationError when it cannot be had.

    Linux ends its connections when the other side has read nothing for so many ``seconds``.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}: {error.strerror or error}") from error
    try:
        # A restart need not wait until the last server's connections are forgotten.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # A time limit on sending could not distinguish a slow reader from one that does not read.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on port {port} of {host}: {error.strerror or error} ({advice})"
        ) from error
    return listener
