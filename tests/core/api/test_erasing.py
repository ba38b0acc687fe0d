"""Erasure of an account: no record names the person, and sums and ranks of others are unchanged."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from huggingface_hub import HfApi
from tests.waiting import eventually
from tortoise import Tortoise

from collidium import accounts, database, simulations
from collidium.database import rows_of
from collidium.runtime.failpoints import VARIABLE
from collidium.testing.server import ServerProcess, run_command

from .conftest import SUBMIT, OpenPlatform, files_below, ok, operating, parquet, signed_in, spoiled

BOARD = "/v1/leaderboard/tracking?all=true"


@pytest.fixture
def server(open_platform: OpenPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    environment = {"PLATFORM_MOCK_SECONDS": "0", "PLATFORM_IDENTITY_CACHE_SECONDS": "0"}
    with open_platform(tmp_path_factory.mktemp("server"), environment) as running:
        yield running


def naming(server: ServerProcess, name: str) -> list[str]:
    """The rows of all tables in which the name stands; ledger and totals add up."""

    async def read() -> list[str]:
        async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
            assert await accounts.audit() == []
            assert await simulations.audit() == []
            tables = [model._meta.db_table for model in Tortoise.apps[database.APP].values()]
            found = [(table, await rows_of(f"SELECT * FROM {table}")) for table in tables]
            return [f"{table} {dict(row)}" for table, rows in found for row in rows]

    return [row for row in asyncio.run(read()) if name in row.lower()]


def erase(server: ServerProcess, *options: str, failpoint: str = "") -> Any:
    done = run_command(
        ("user", "erase", "zara", *options, "--json"),
        server.environment | ({VARIABLE: failpoint} if failpoint else {}),
        server.directory,
    )
    assert (done.returncode == 0) != bool(failpoint), done.stderr
    return json.loads(done.stdout) if done.stdout else None


def test_a_person_is_erased(server: ServerProcess, oracle: pa.Table) -> None:
    with operating(server) as admin, signed_in(server, "zara") as zara, signed_in(server, "bob") as bob:
        shared = parquet(spoiled(oracle, 0.4))
        for client, body in ((zara, parquet(oracle)), (zara, shared), (bob, shared)):
            query = {"model_repo": "zara/net"}
            ok(client.post(SUBMIT, params=query, content=body))
        zara.put("/v1/me/webhook", json={"url": "https://zara.example.org/hook"})
        order = {"channel": "single_muon", "events": 10, "pileup": 0}
        placed = zara.post("/v1/simulate", json=order, headers={"Idempotency-Key": "1"}).json()["request_id"]
        eventually(lambda: zara.get(f"/v1/requests/{placed}").json()["state"] == "completed")
        for name, captain, other in (
            ("spring-2027", zara, bob),
            ("autumn-2027", bob, zara),
            ("own-2027", zara, None),
        ):
            body = {"name": name, "task": "tracking", "team_size": 2}
            admin.post("/admin/challenges", json=body)
            admin.post(f"/admin/challenges/{name}/members", json={"hub_usernames": ["Zara"]})
            where = f"/v1/challenges/{name}"
            captain.post(f"{where}/team", json={"name": f"{name} and Zara"})
            if other:
                code = captain.post(f"{where}/team/invitations", json={}).json()["code"]
                ok(other.post(f"{where}/join", json={"code": code}))
            assert zara.post(f"{where}/submit", content=shared).json()["submission_id"]
        admin.post("/admin/challenges/own-2027/members", json={"hub_usernames": ["zoe"]})
        admin.delete("/admin/challenges/own-2027/members/Zara", headers={"Idempotency-Key": "3"})
        gift = {"hub_username": "zara", "delta": 2, "reason": "for a talk"}
        ok(admin.post("/admin/grant", json=gift, headers={"Idempotency-Key": "2"}))
        admin.post("/admin/ban", json={"hub_username": "zara", "banned": True, "note": "zara is loud"})
        admin.post("/admin/ban", json={"hub_username": "zara", "banned": False})
        hub = HfApi(endpoint=f"{server.base_url}/hub", token=zara.headers["Authorization"].split()[1])
        hub.create_repo("zara/net")
        balance = admin.get("/admin/accounts/zara").json()["credits"]
        board, usage = bob.get(BOARD).json(), admin.get("/admin/usage").json()
        assert len(naming(server, "zara")) >= 10

        seen = erase(server)
        assert (seen["erased"], seen["submissions"], seen["requests"]) == (False, 5, 1)
        assert seen["repositories"] >= 1
        assert zara.get("/v1/me").status_code == 200
        for failpoint in ("erase.closed", "erase.files_deleted"):
            erase(server, "--yes", failpoint=failpoint)
            assert zara.get("/v1/me").status_code in (401, 403)
        becomes = erase(server, "--yes")["becomes"]
        again = erase(server, "--yes")
        assert (again["account"], again["submissions"]) == (None, 0)

        assert naming(server, "zara") == []
        assert zara.get("/v1/me").status_code == 401
        after = bob.get(BOARD).json()
        before, now = (
            [(place["rank"], place["submission_id"], place["scores"]) for place in places]
            for places in (board, after)
        )
        assert before == now
        assert [place["hub_username"] for place in after].count(becomes) == 2
        for name, captain in (("spring-2027", "bob"), ("autumn-2027", "bob"), ("own-2027", None)):
            (team,) = bob.get(f"/v1/challenges/{name}/teams").json()
            assert (team["captain"], team["members"]) == (captain, [captain] if captain else [])
            (place,) = bob.get(f"/v1/challenges/{name}/leaderboard").json()
            assert (place["hub_username"], place["team"]) == (becomes, team["name"])
        account = admin.get(f"/admin/accounts/{becomes}").json()
        assert (account["credits"], account["banned"]) == (balance, False)
        renamed = json.loads(json.dumps(usage).replace('"zara"', f'"{becomes}"'))
        assert admin.get("/admin/usage").json() == renamed
        stored = [path.name for path in files_below(server.data_dir / "storage" / "predictions")]
        assert len(stored) == 1  # what bob has sent, too
        with closing(sqlite3.connect(server.data_dir / "hub" / "hub.sqlite3")) as hub_rows:
            assert "zara" not in "".join(hub_rows.iterdump())
        assert bob.get("/hub/api/models/zara/net").status_code in (401, 404)
        assert bob.post("/v1/simulate", json=order).json()["cached"] is False
        # The next account of that name begins anew, and no account has the neutral one.
        with signed_in(server, "zara") as other:
            assert other.get("/v1/me").json()["credits"] == 10
        assert server.run("user", "add", becomes).returncode == 3
