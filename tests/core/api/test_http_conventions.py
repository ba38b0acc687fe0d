"""Problem documents, request ids, CORS, health and metrics."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from tests.distributions import install

from collidium import __version__, settings
from collidium.api.app import create_app
from collidium.runtime.release import commit
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, calling, files_below, ok, parquet, signed_in

METRICS_TOKEN = "scrape"
#: A server of its own: calls are counted.
PLATFORM = {"PLATFORM_METRICS_TOKEN": METRICS_TOKEN, "PLATFORM_CORS_ORIGINS": "https://apps.example"}


def test_an_unknown_path_is_a_problem_document(anonymous: httpx.Client) -> None:
    answer = anonymous.get("/nothing")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert set(document) == {"type", "title", "status", "detail", "request_id"}
    assert document["request_id"] == answer.headers["X-Request-ID"]


def test_plugins_can_build_addresses(tmp_path: Path) -> None:
    """Rules compile what builds an address when one is asked for."""
    addresses = create_app(settings.load(data_dir=tmp_path)).url_map.bind("localhost")
    built = addresses.build("simulations.find", {"request_id": "a b", "more": 1})
    assert built == "/v1/requests/a%20b?more=1"


def test_health_and_readiness(anonymous: httpx.Client) -> None:
    assert ok(anonymous.get("/healthz")) == {"status": "ok", "version": __version__, "commit": commit()}
    ready = ok(anonymous.get("/readyz"))
    # A server that has just started, or cannot run models, is ready.
    assert ready.pop("models") in {"ok", "away"}
    assert ready == {
        "status": "ready",
        "database": "ok",
        "storage": "ok",
        "scoring": "ok",
        "submissions_frozen": False,
        "plugins_failed": [],
    }


def metrics_of(client: httpx.Client) -> str:
    return client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).text


@pytest.mark.parametrize("token", ["", "Bearer hub_other", METRICS_TOKEN])
def test_metrics_need_their_token(anonymous: httpx.Client, token: str) -> None:
    assert anonymous.get("/metrics", headers={"Authorization": token}).status_code == 401
    assert "python_info" in metrics_of(anonymous)


def test_requests_are_counted_by_route_and_known_methods(anonymous: httpx.Client) -> None:
    for n in range(5):
        anonymous.get(f"/v1/submissions/{n}")
        anonymous.request(f"MADE-UP-{n}", "/healthz")
    text = metrics_of(anonymous)
    counted = 'method="GET",route="/v1/submissions/<submission_id>",status="404"'
    assert f"collidium_http_requests_total{{{counted}}} 5.0" in text
    assert "MADE-UP" not in text
    assert 'method="other"' in text


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [("https://apps.example", "https://apps.example"), ("https://evil.example", None)],
)
def test_browsers_of_allowed_origins_may_call(
    anonymous: httpx.Client, origin: str, allowed: str | None
) -> None:
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    preflight = anonymous.options("/v1/me", headers={"Origin": origin} | asked)
    assert preflight.headers.get("Access-Control-Allow-Origin") == allowed


def test_log_lines_carry_the_request_id_and_no_secret(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_LOG_FORMAT": "json"})
    token = server.add_user("alice")
    with calling(server, Authorization=f"Bearer {token}") as alice:
        request_id = alice.get("/v1/me?secret=in-query").headers["X-Request-ID"]
    log = server.log()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (line,) = [line for line in lines if line["request_id"] == request_id and "/v1/me" in line["message"]]
    assert " 200 " in line["message"]
    assert line["account"] == "alice"
    for secret in (token, server.admin_token, "in-query"):
        assert secret not in log


@pytest.mark.parametrize("name", ["Authorization", "X-Admin-Token"])
@pytest.mark.parametrize("path", ["/v1/me", "/hub/api/whoami-v2"])
def test_two_credentials_are_refused(anonymous: httpx.Client, name: str, path: str) -> None:
    answer = anonymous.get(path, headers=[(name, "Bearer one"), (name, "Bearer two")])
    assert answer.status_code == 400
    assert name in answer.text


def test_two_lengths_of_a_body_are_refused(platform: ServerProcess) -> None:
    host, port = platform.base_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as client:
        client.sendall(
            b"POST /admin/grant HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_files_of_the_data_directory_are_private(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table
) -> None:
    alice.post(SUBMIT, content=parquet(oracle)).raise_for_status()
    alice.post("/v1/simulate", json={"channel": "single_muon", "events": 1, "pileup": 0}).raise_for_status()
    files = files_below(platform.data_dir)
    assert {"hub.sqlite3", "manifest.json"} <= {path.name for path in files}
    assert [str(path) for path in files if path.stat().st_mode & 0o077] == []


def test_a_path_cannot_forge_a_log_line(platform: ServerProcess, anonymous: httpx.Client) -> None:
    anonymous.get(f"/x%0A2026-01-01%20INFO%20forged{'y' * 5000}")
    log = platform.log()
    (line,) = [line for line in log.splitlines() if "forged" in line]
    assert r"GET /x\x0a2026-01-01 INFO forged" in line
    assert len(line) < 700


STORAGE = """
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.hookspecs import hookimpl

class Away(Storage):
    def __init__(self, name, error):
        self.name, self.error = name, error

    async def put(self, key, path): raise self.error
    async def get(self, key, path): raise self.error
    async def exists(self, key): raise self.error
    async def delete(self, key): raise self.error
    async def close(self): pass

@hookimpl
def collidium_storages(settings):
    return [Away("away", StorageUnavailable("not mounted")), Away("careless", ConnectionRefusedError("no"))]
"""


@pytest.mark.parametrize(("storage", "status"), [("away", 503), ("careless", 500)])
def test_a_storage_that_is_down_is_not_taken_for_the_database(
    start_platform: StartServer, tmp_path: Path, oracle: pa.Table, storage: str, status: int
) -> None:
    install(tmp_path / "site", "away", {"away_storage": STORAGE})
    server = start_platform({"PYTHONPATH": str(tmp_path / "site"), "PLATFORM_STORAGE": storage})
    with signed_in(server, "alice") as alice:
        answer = alice.post(SUBMIT, content=parquet(oracle))
    assert answer.status_code == status
    assert "database" not in answer.json()["detail"]
    assert ("storage" in answer.json()["detail"]) == (status == 503)
