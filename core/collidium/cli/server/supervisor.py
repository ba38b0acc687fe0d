"""Several server processes on one port: starts them, replaces one that dies, stops them together."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from collidium import logs
from collidium.cli.server.worker import GRACE_SECONDS, serve_here
from collidium.errors import CollidiumError
from collidium.settings import Settings

logger = logging.getLogger(__name__)

_spawn = multiprocessing.get_context("spawn")


class Worker:
    """A server process and the end of a pipe on which it says that it is ready."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self.news, its_end = _spawn.Pipe(duplex=False)
        self.ready = False
        self.process: SpawnProcess = _spawn.Process(target=_work, args=(settings, listener, its_end))
        self.process.start()
        its_end.close()

    @property
    def watched(self) -> list[Connection | int]:
        return [self.process.sentinel] if self.ready else [self.process.sentinel, self.news]

    def hear(self) -> None:
        """Take in what it said."""
        if not self.ready and self.news.poll():
            self.ready = self._said_ready()

    def _said_ready(self) -> bool:
        try:
            return bool(self.news.recv())
        except EOFError:
            return False

    def stop(self) -> None:
        """Ask it to finish what it has begun and to end."""
        self.process.terminate()

    def join(self) -> None:
        """Wait until it has ended; past its time it is killed."""
        self.process.join(GRACE_SECONDS + 10)
        if self.process.is_alive():
            logger.error("worker %s does not stop and is killed", self.process.pid)
            self.process.kill()
            self.process.join()
        self.news.close()


def supervise(settings: Settings, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Keep ``settings.workers`` processes serving until SIGTERM or SIGINT; ``announce`` when all are ready.

    A worker that dies later is replaced; one that dies before it was ready ends all, with CollidiumError.
    """
    with _stop_signal() as stopped, _shared_metrics():
        workers = [Worker(settings, listener) for _ in range(settings.workers)]
        announced = False
        try:
            while not _wait(workers, stopped):
                workers = [_alive_or_replaced(worker, settings, listener) for worker in workers]
                if not announced and all(worker.ready for worker in workers):
                    announced = True
                    announce()
        finally:
            # With the workers' copies the last of it: from now on new connections are refused.
            listener.close()
            for worker in workers:
                worker.stop()
            for worker in workers:
                worker.join()


def _wait(workers: list[Worker], stopped: int) -> bool:
    """Wait until something happens; whether it is the signal to stop."""
    watched: list[Connection | int] = [stopped]
    for worker in workers:
        watched += worker.watched
    return stopped in wait(watched)


def _alive_or_replaced(worker: Worker, settings: Settings, listener: socket.socket) -> Worker:
    worker.hear()
    if worker.process.exitcode is None:
        return worker
    if not worker.ready:
        raise CollidiumError(f"a worker ended with {worker.process.exitcode} before it was ready")
    logger.error("worker %s ended with %s and is replaced", worker.process.pid, worker.process.exitcode)
    worker.join()
    return Worker(settings, listener)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Let the workers count into one place, so that whichever answers ``/metrics`` knows of all."""
    with tempfile.TemporaryDirectory(prefix="collidium-metrics-") as directory:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        yield


@contextmanager
def _stop_signal() -> Iterator[int]:
    """A file descriptor that becomes readable at SIGTERM or SIGINT."""
    reading, writing = os.pipe()

    def tell(number: int, frame: FrameType | None) -> None:
        os.write(writing, b"x")

    before = {number: signal.signal(number, tell) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield reading
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _work(settings: Settings, listener: socket.socket, ready: Connection) -> None:
    """A worker's main function."""
    # Ctrl-C reaches the whole group of processes; the supervisor passes it on as SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure(settings.log_level, settings.log_format)
    try:
        serve_here(settings, listener, lambda: ready.send(True))
    except CollidiumError as error:
        logger.error("%s", error.detail)
        raise SystemExit(error.exit_code) from None
