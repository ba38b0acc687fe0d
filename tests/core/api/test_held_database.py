"""An SQLite database that another process writes to: reads go on, writes are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx

from collidium.testing.server import ServerProcess

from .conftest import calling, ok, signed_in


def test_reads_go_on_while_another_process_writes(fresh_platform: ServerProcess) -> None:
    url = fresh_platform.environment["PLATFORM_DATABASE_URL"]
    if "sqlite" not in url:
        return  # PostgreSQL has row locks
    path = Path(url.removeprefix("sqlite:///"))
    order = {"channel": "ttbar", "events": 1, "pileup": 0, "seed": 1}
    with signed_in(fresh_platform, "alice") as alice, closing(sqlite3.connect(path)) as other:
        ok(alice.get("/v1/me"))
        other.execute("BEGIN IMMEDIATE")
        refused: httpx.Response = alice.post("/v1/simulate", json=order)
        assert refused.status_code == 503, refused.text
        for read in ("/v1/leaderboard/tracking", "/v1/challenges", "/v1/me", "/v1/requests"):
            ok(alice.get(read))
        other.rollback()
        with calling(fresh_platform) as anyone:
            ok(anyone.get("/v1/leaderboard/tracking"))
        assert alice.post("/v1/simulate", json=order).is_success
