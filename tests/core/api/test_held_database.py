"""An SQLite database that another process writes to: reads go on, writes are refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from threading import Event
from time import monotonic
from typing import Self

import httpx
import pytest
from tests.hub import token_on

from collidium.testing.server import ServerProcess

from .conftest import calling, ok, signed_in

ORDER = {"channel": "ttbar", "events": 1, "pileup": 0, "seed": 1}
READS = ("/v1/leaderboard/tracking", "/v1/challenges", "/v1/me", "/v1/requests")


@contextmanager
def held(file: str, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Hold the write lock of a database while the context lasts."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute(begin)
        yield
        other.execute("ROLLBACK")


def database_file(server: ServerProcess) -> str:
    return server.environment["PLATFORM_DATABASE_URL"].removeprefix("sqlite:///")


class Writes:
    """Writes that are made again and again, each in a thread, until the context ends."""

    def __init__(self, calls: Sequence[Callable[[], httpx.Response]]) -> None:
        self._calls = calls
        self._ended = Event()
        #: Of each call its statuses and how long each took.
        self.results: list[list[tuple[int, float]]] = []

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(len(self._calls))
        self._under_way = [self._threads.submit(self._repeat, call) for call in self._calls]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._threads:
            self.results = [each.result() for each in self._under_way]

    def _repeat(self, call: Callable[[], httpx.Response]) -> list[tuple[int, float]]:
        found = [timed(call)]
        while not self._ended.is_set():
            found.append(timed(call))
        return found


def timed(call: Callable[[], httpx.Response]) -> tuple[int, float]:
    """The status of a response, and how long it took."""
    began = monotonic()
    return call().status_code, monotonic() - began


def check_held(
    file: str,
    begin: str,
    writes: Sequence[Callable[[], httpx.Response]],
    reads: Sequence[Callable[[], httpx.Response]],
) -> None:
    """While a database is held, writes are refused together and no read waits for them.

    How long things take is compared with each other, as a machine may have much else to do.
    """
    with held(file, begin):
        status, alone = timed(writes[0])
        assert status == 503
        with Writes(writes) as repeated:
            for read in reads:
                ok(read())
        results = repeated.results
    assert {status for each in results for status, _ in each} == {503}
    assert max(map(len, results)) <= len(reads) / 2, "reads waited for writes"
    longest = max(seconds for each in results for _, seconds in each)
    assert longest < 3 * alone, "writes waited one after the other"


@pytest.mark.only_on("sqlite")  # PostgreSQL has row locks
@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_reads_do_not_wait_for_writes_of_the_process(fresh_platform: ServerProcess, begin: str) -> None:
    """A process's writes wait for the lock; its reads go on meanwhile, and the writes end together."""
    newcomers = [token_on(fresh_platform.data_dir / "hub", f"new{number}") for number in range(2)]
    with signed_in(fresh_platform, "alice") as alice, calling(fresh_platform) as anyone:
        ok(alice.get("/v1/me"))

        def order(seed: int) -> httpx.Response:
            return alice.post("/v1/simulate", json=ORDER | {"seed": seed})

        def first_call(token: str) -> httpx.Response:
            return anyone.get("/v1/me", headers={"Authorization": f"Bearer {token}"})

        writes = [*(partial(order, seed) for seed in range(4)), *(partial(first_call, t) for t in newcomers)]
        reads = [*(partial(alice.get, read) for read in READS), partial(anyone.get, READS[0])]
        check_held(database_file(fresh_platform), begin, writes, reads * 3)
        for read in reads:
            ok(read())
        assert order(0).is_success
        assert ok(first_call(newcomers[0]))["hub_username"] == "new0"


def test_a_hub_that_is_held_refuses_writes_and_reads_on(fresh_platform: ServerProcess) -> None:
    """The hub's database is SQLite, too: two threads write to it, and more requests do not wait in turn."""
    token = token_on(fresh_platform.data_dir / "hub", "alice")
    with calling(fresh_platform, Authorization=f"Bearer {token}") as alice:

        def create(number: int) -> httpx.Response:
            return alice.post("/hub/api/repos/create", json={"name": f"data{number}", "type": "dataset"})

        file = str(fresh_platform.data_dir / "hub" / "hub.sqlite3")
        writes = [partial(create, number) for number in range(12)]
        check_held(file, "BEGIN IMMEDIATE", writes, [partial(alice.get, "/hub/api/whoami-v2")] * 12)
        assert create(0).status_code == 200
