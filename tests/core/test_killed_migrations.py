"""A migration that is killed at any moment leaves a database that the next one completes."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
from tests.core import killed_migrations
from tests.counts import LONG
from tests.waiting import eventually
from tortoise.exceptions import IntegrityError

from collidium import database
from collidium.database import connections
from collidium.testing.databases import Databases, sqlite_url
from collidium.testing.processes import ending_with_parent, isolated_environment
from collidium.testing.server import COLLIDIUM

#: Kills of each kind of database; a half of them of an empty one.
KILLS: Final = 200 if LONG else 20
INTERRUPTS: Final = 20 if LONG else 1

_processes = multiprocessing.get_context("forkserver")
# A process that is forked from one that has imported all of it begins to migrate within milliseconds.
_processes.set_forkserver_preload(
    ["tests.core.killed_migrations", *database.config("sqlite:///any")["apps"][database.APP]["models"]]
)


@pytest.mark.parametrize("rows", [0, 100_000 if LONG else 20_000])
def test_a_killed_migration_is_completed(
    _databases: Databases,  # noqa: PT019 -- a new one for each round
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
) -> None:
    """Whatever the moment, all of it is there or nothing, and `db check` reports which."""
    monkeypatch.setattr(connections, "MIGRATIONS", killed_migrations.NAME)
    finish(int)  # the process that others are forked from has started, which takes seconds
    kills = KILLS // 2
    seconds = 0.0
    while kills:
        with _databases.empty() as url:
            if rows:
                finish(killed_migrations.migrate_to_first, url, rows)
            state = untouched = problems(url)
            while seconds and kills and state == untouched:
                process = start(killed_migrations.migrate, url)
                process.join(random.uniform(0, seconds))
                process.kill()
                process.join()
                kills -= process.exitcode == -signal.SIGKILL
                state = problems(url)
                assert state in (untouched, [])
            took = finish(killed_migrations.migrate, url)
            seconds = seconds or took
            assert problems(url) == []
            asyncio.run(require_everything(url, rows))


def start(work: Callable[..., object], *arguments: Any) -> ForkServerProcess:
    process = _processes.Process(target=work, args=arguments)
    process.start()
    return process


def finish(work: Callable[..., object], *arguments: Any) -> float:
    """Run it to its end; the seconds that it took."""
    begun = monotonic()
    process = start(work, *arguments)
    process.join()
    assert process.exitcode == 0
    return monotonic() - begun


def problems(url: str) -> list[str]:
    return asyncio.run(database.check(url))


async def require_everything(url: str, rows: int) -> None:
    async with database.connected(url):
        totals = await database.rows_of("SELECT count(*) AS n, sum(charge) AS charge FROM clusters")
        assert [tuple(row.values()) for row in map(dict, totals)] == [(rows, rows * (rows + 1) or None)]
        (layers,) = await database.rows_of("SELECT sum(clusters) AS n, count(*) AS layers FROM layers")
        assert (layers["n"] or 0, layers["layers"]) == (rows, 10 if rows else 0)
        for table in ("hits", "clusters") if rows else ():
            with pytest.raises(IntegrityError, match=f"{table} stay|hits stay"):
                await database.rows_of(f"DELETE FROM {table} WHERE id = 1")


def test_ctrl_c_at_the_first_start_leaves_a_database(tmp_path: Path) -> None:
    """The server is interrupted as soon as its database is there, or a little later."""
    for number in range(INTERRUPTS):
        home = tmp_path / str(number)
        home.mkdir()
        file = home / "data" / "collidium.sqlite3"
        with subprocess.Popen(
            ending_with_parent([*COLLIDIUM, "serve", "--port", "0"]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=isolated_environment(home, {"PLATFORM_DATA_DIR": str(file.parent)}),
        ) as server:
            try:
                eventually(file.exists)
                with suppress(subprocess.TimeoutExpired):
                    server.wait(random.uniform(0, 1))
                server.send_signal(signal.SIGINT)
                _, errors = server.communicate(timeout=60)
            finally:
                server.kill()
        assert b"Traceback" not in errors
        asyncio.run(database.migrate(sqlite_url(file)))
        assert problems(sqlite_url(file)) == []
