"""An SQLite database that another process writes to: reads go on, writes are refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from time import monotonic

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


@pytest.mark.only_on("sqlite")  # PostgreSQL has row locks
@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_reads_do_not_wait_for_writes_of_the_process(fresh_platform: ServerProcess, begin: str) -> None:
    """A process's writes wait for the lock; its reads go on meanwhile, and the writes end together."""
    newcomers = [token_on(fresh_platform.data_dir / "hub", f"new{number}") for number in range(2)]
    with (
        signed_in(fresh_platform, "alice") as alice,
        calling(fresh_platform) as anyone,
        ThreadPoolExecutor(8) as threads,
    ):
        ok(alice.get("/v1/me"))

        def order(seed: int) -> httpx.Response:
            return alice.post("/v1/simulate", json=ORDER | {"seed": seed})

        def first_call(token: str) -> httpx.Response:
            return anyone.get("/v1/me", headers={"Authorization": f"Bearer {token}"})

        with held(database_file(fresh_platform), begin):
            began = monotonic()
            writes = [threads.submit(order, seed) for seed in range(4)]
            writes += [threads.submit(first_call, token) for token in newcomers]
            assert not wait(writes, 1, FIRST_COMPLETED).done, "a write has not waited"
            for read in READS:
                ok(alice.get(read))
            ok(anyone.get(READS[0]))
            assert not any(write.done() for write in writes), "a read waited for the writes"
            assert [write.result().status_code for write in writes] == [503] * 6
            # Each alone takes 4.5 s: 27 s, had they waited one after the other.
            assert monotonic() - began < 15
            for read in READS:
                ok(alice.get(read))
        assert order(0).is_success
        assert ok(first_call(newcomers[0]))["hub_username"] == "new0"


def test_a_hub_that_is_held_refuses_writes_and_reads_on(fresh_platform: ServerProcess) -> None:
    """The hub's database is SQLite, too: two threads write to it, and more requests do not wait in turn."""
    token = token_on(fresh_platform.data_dir / "hub", "alice")
    with (
        calling(fresh_platform, Authorization=f"Bearer {token}") as alice,
        ThreadPoolExecutor(8) as threads,
    ):

        def create(number: int) -> int:
            body = {"name": f"data{number}", "type": "dataset"}
            return alice.post("/hub/api/repos/create", json=body).status_code

        with held(str(fresh_platform.data_dir / "hub" / "hub.sqlite3")):
            began = monotonic()
            writes = [threads.submit(create, number) for number in range(8)]
            assert ok(alice.get("/hub/api/whoami-v2"))["name"] == "alice"
            assert not any(write.done() for write in writes)
            assert [write.result() for write in writes] == [503] * 8
            # 18 s, had they waited two by two.
            assert monotonic() - began < 12
        assert create(0) == 200
