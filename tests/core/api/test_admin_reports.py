"""Operators' reports, and simulation requests of all accounts with their outputs."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.waiting import eventually

from collidium.client import Client
from collidium.testing.databases import Databases
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import ok, operating, pages_of, signed_in


@pytest.fixture(scope="module")
def server(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on which alice ordered twice and cancelled once, and bob once; nothing has completed."""
    env = {"PLATFORM_MOCK_SECONDS": "100000"}
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("server"), url, env) as running:
        with signed_in(running, "alice") as alice, signed_in(running, "bob") as bob:
            order(alice, channel="ttbar", events=10)
            unwanted = order(alice, channel="zmumu", events=10)
            order(bob, channel="ttbar", events=20)
            alice.post(f"/v1/requests/{unwanted}/cancel")
            eventually(lambda: alice.get(f"/v1/requests/{unwanted}").json()["state"] == "cancelled")
        yield running


@pytest.fixture
def operator(server: ServerProcess) -> Iterator[httpx.Client]:
    with operating(server) as client:
        yield client


def order(client: httpx.Client, **body: Any) -> str:
    return str(ok(client.post("/v1/simulate", json={"pileup": 0, **body}), 202)["request_id"])


# -- reports ------------------------------------------------------------------------------------------


def test_usage(operator: httpx.Client) -> None:
    assert operator.get("/admin/usage").json() == {
        "month": f"{datetime.now(UTC):%Y-%m}",
        "total_node_hours": 0.916,
        "total_requests": 3,
        "users": [
            {"hub_username": "bob", "node_hours": 0.583, "requests": 1},
            {"hub_username": "alice", "node_hours": 0.333, "requests": 2},
        ],
    }
    (first,) = operator.get("/admin/usage?limit=1").json()["users"]
    assert first["hub_username"] == "bob"


def test_channels(operator: httpx.Client) -> None:
    this_month = operator.get("/admin/analytics/channels").json()
    assert this_month == [
        {"channel": "ttbar", "requests": 2, "node_hours": 0.916},
        {"channel": "zmumu", "requests": 1, "node_hours": 0.0},
    ]
    month = f"{datetime.now(UTC):%Y-%m}"
    assert operator.get(f"/admin/analytics/channels?month={month}").json() == this_month
    assert operator.get("/admin/analytics/channels?month=2001-01").json() == []


def test_daily_has_every_day_of_the_window(operator: httpx.Client) -> None:
    days = operator.get("/admin/analytics/daily?days=3").json()
    today = datetime.now(UTC).date()
    assert [day["date"] for day in days] == [f"{today - timedelta(days=back)}" for back in (2, 1, 0)]
    assert days[0] == {"date": days[0]["date"], "node_hours": 0.0, "requests": 0}
    assert (days[2]["node_hours"], days[2]["requests"]) == (0.916, 3)
    assert len(operator.get("/admin/analytics/daily").json()) == 30
    assert len(operator.get("/admin/analytics/daily?days=3660").json()) == 3660


def test_failures(operator: httpx.Client, start_server: StartServer) -> None:
    month = f"{datetime.now(UTC):%Y-%m}"
    assert operator.get("/admin/analytics/failures").json() == {
        "month": month,
        "failure_rate": 0.0,
        "failed": 0,
        "finished": 1,
    }
    failing = start_server({"PLATFORM_MOCK_SECONDS": "0", "PLATFORM_MOCK_OUTCOME": "failed"})
    with signed_in(failing, "alice") as alice, operating(failing) as other:
        order(alice, channel="ttbar", events=10)
        eventually(lambda: other.get("/admin/analytics/failures").json()["finished"] == 1)
        report = other.get("/admin/analytics/failures").json()
        assert report == {"month": month, "failure_rate": 100.0, "failed": 1, "finished": 1}
        assert alice.get("/v1/me").json()["credits"] == 10


@pytest.mark.parametrize(
    "address",
    [
        "analytics/channels?month=2026-13",
        "analytics/channels?month=0000-01",
        "analytics/channels?month=2026-01%0a",
        "analytics/channels?month=%D9%A2%D9%A0%D9%A2%D9%A6-01",
        "analytics/failures?month=2026-13",
        "requests?user=unknown",
        "requests?user=%00",
        "requests/x",
        "requests/%ed%a0%80",
        "requests/x/output",
        "requests/x/output/data/x.parquet",
        f"requests/{'0' * 32}/output",
        "accounts?cursor=" + "9" * 400,
        "accounts?sort=credits&cursor=NaN:1",
        "accounts?sort=credits&cursor=1.000:" + "9" * 100,
    ],
)
def test_invalid_requests_are_rejected(operator: httpx.Client, address: str) -> None:
    answer = operator.get(f"/admin/{address}")
    assert answer.status_code in {404, 422}, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


# -- requests -----------------------------------------------------------------------------------------


def test_requests_of_everybody_are_listed_and_picked(operator: httpx.Client) -> None:
    def listed(query: str = "") -> list[tuple[str, str, str]]:
        return [
            (request["hub_username"], request["channel"], request["state"])
            for request in operator.get(f"/admin/requests{query}").json()
        ]

    assert [(user, channel) for user, channel, _ in listed()] == [
        ("bob", "ttbar"),
        ("alice", "zmumu"),
        ("alice", "ttbar"),
    ]
    assert listed("?state=cancelled") == [("alice", "zmumu", "cancelled")]
    assert {user for user, _, _ in listed("?user=ALICE")} == {"alice"}
    assert len(listed("?user=alice")) == 2
    assert {channel for _, channel, _ in listed("?channel=ttbar")} == {"ttbar"}
    assert listed("?channel=nothing") == []
    assert len(listed("?user=alice&channel=ttbar")) == 1


def test_pages_keep_what_was_asked_for(operator: httpx.Client) -> None:
    pages = pages_of(operator, "/admin/requests?channel=ttbar&limit=1")
    assert [[(request["hub_username"], request["channel"]) for request in page] for page in pages] == [
        [("bob", "ttbar")],
        [("alice", "ttbar")],
    ]


def test_an_operator_cancels_any_request_and_it_is_audited(
    server: ServerProcess, operator: httpx.Client
) -> None:
    with signed_in(server, "carol") as carol:
        request_id = order(carol, channel="single_muon", events=1)
        where = f"/admin/requests/{request_id}"
        assert ok(operator.post(f"{where}/cancel"), 202)["cancel_requested"]
        eventually(lambda: operator.get(where).json()["state"] == "cancelled")
        report = operator.get(where).json()
        assert (report["step"], report["due_at"]) == ("", None)
        assert "runner_handle" not in carol.get(f"/v1/requests/{request_id}").json()
        assert operator.post(f"{where}/cancel").status_code == 200
        assert carol.get("/v1/me").json()["credits"] == 10
    logged = operator.get("/admin/audit").json()[0]
    assert (logged["action"], logged["target"]) == ("cancel", request_id)
    assert operator.post(f"/admin/requests/{'0' * 32}/cancel").status_code == 404


# -- outputs ------------------------------------------------------------------------------------------


def test_an_output_that_is_kept_can_be_fetched(start_server: StartServer, tmp_path: Path) -> None:
    # Ten events with more numbers than fit into one piece of an answer.
    values = np.random.default_rng(1).normal(size=(10, 50_000))
    pq.write_table(pa.table({"event_id": range(10), "px": list(values)}), tmp_path / "events")
    server = start_server(
        {
            "PLATFORM_RUN_MODE": "real",
            "PLATFORM_RUNNER": "local",
            "PLATFORM_PIPELINE_COMMAND": f"cp {tmp_path}/events {{output}}/particles.parquet",
            "PLATFORM_POLL_SECONDS": "0.1",
        }
    )
    with signed_in(server, "alice") as alice, operating(server) as operator:
        request_id = order(alice, channel="single_muon", events=10)
        where = f"/admin/requests/{request_id}/output"
        eventually(lambda: bool(operator.get(where).json()))
        (file,) = operator.get(where).json()
        assert file["path"] == "data/single_muon_pu0_particles/train-00000-of-00001.parquet"
        assert file["rows"] == 10
        assert file["size_bytes"] > 2 * 1024**2
        assert operator.get(f"/admin/requests/{request_id}").json()["runner_handle"] == request_id
        answer = operator.get(f"{where}/{file['path']}")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/vnd.apache.parquet"
        assert int(answer.headers["Content-Length"]) == len(answer.content) == file["size_bytes"]
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
        assert pq.read_table(io.BytesIO(answer.content)).num_rows == 10
        for path in ("x", "../../collidium.sqlite3", "..%2f..%2fadmin-token", "data", "/" + file["path"]):
            assert operator.get(f"{where}/{path}").status_code == 404, path
        # Its owner has it once it has completed.
        own = f"/v1/requests/{request_id}/output"
        eventually(lambda: alice.get(own).json() == [file])
        assert alice.get(f"{own}/{file['path']}").content == answer.content
        assert alice.get(f"{own}/x").status_code == 404
        # A part of it, if it is the same file.
        mine, etag = f"{own}/{file['path']}", f'"{file["sha256"]}"'
        rest = alice.get(mine, headers={"Range": "bytes=1000000-", "If-Range": etag})
        assert (rest.status_code, rest.content) == (206, answer.content[1_000_000:])
        assert rest.headers["Content-Range"] == f"bytes 1000000-{file['size_bytes'] - 1}/{file['size_bytes']}"
        whole = alice.get(mine, headers={"Range": "bytes=1000000-", "If-Range": '"another"'})
        assert (whole.status_code, whole.content) == (200, answer.content)
        assert alice.get(mine, headers={"Range": f"bytes={file['size_bytes']}-"}).status_code == 416
        assert alice.get(mine, headers={"If-None-Match": etag}).status_code == 304
        last = alice.get(mine, headers={"Range": "bytes=-8"})
        assert (last.status_code, last.content) == (206, answer.content[-8:])
        for ignored in ("bytes=0-1,5-6", "items=0-1", "bytes=x"):
            assert alice.get(mine, headers={"Range": ignored}).status_code == 200, ignored
        with Client(server.base_url, alice.headers["Authorization"].removeprefix("Bearer ")) as client:
            (listed,) = client.output(request_id).items
            assert client.output_file(request_id, listed, tmp_path).read_bytes() == answer.content
        # A client that hangs up half-way leaves nothing behind, nor does any other.
        with operator.stream("GET", f"{where}/{file['path']}") as partly:
            next(partly.iter_raw(1024))
        assert [path.name for path in (server.data_dir / "uploads").iterdir()] == ["partial"]
        # Another content than was stored is not sent, and is no fault of the caller.
        kept = next((server.data_dir / "storage" / "outputs" / request_id).iterdir())
        content = kept.read_bytes()
        for wrong in (content[:-4] + b"PAR2", content[: len(content) // 2]):
            kept.write_bytes(wrong)
            assert operator.get(f"{where}/{file['path']}").status_code == 503
        (server.data_dir / "storage").rename(server.data_dir / "gone")
        (server.data_dir / "storage").mkdir()
        assert operator.get(f"{where}/{file['path']}").status_code == 404
