"""Problem documents, request ids, CORS, health and metrics."""

from __future__ import annotations

import json

import httpx
import pytest

from collidium import __version__
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("DELETE", "/v1/me", 405),
        ("GET", "/v1/me", 401),
        ("GET", "/v1/leaderboard/x", 404),
    ],
)
def test_every_error_is_a_problem_document(
    platform: ServerProcess, method: str, path: str, status: int
) -> None:
    answer = httpx.request(method, platform.base_url + path, trust_env=False)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert set(document) == {"type", "title", "status", "detail", "request_id"}
    assert document["status"] == status
    assert document["request_id"] == answer.headers["X-Request-ID"]
    if status == 405:
        assert "GET" in answer.headers["Allow"]


def test_health_and_readiness(platform: ServerProcess) -> None:
    assert httpx.get(f"{platform.base_url}/healthz", trust_env=False).json() == {
        "status": "ok",
        "version": __version__,
    }
    assert httpx.get(f"{platform.base_url}/readyz", trust_env=False).json() == {
        "status": "ready",
        "database": "ok",
        "submissions_frozen": False,
        "plugins_failed": [],
    }


def test_metrics_count_by_route_not_by_path(platform: ServerProcess) -> None:
    for n in range(5):
        httpx.get(f"{platform.base_url}/v1/submissions/{n}", trust_env=False)
    text = httpx.get(f"{platform.base_url}/metrics", trust_env=False).text
    assert (
        'collidium_http_requests_total{method="GET",route="/v1/submissions/<submission_id>",status="404"} 5.0'
        in text
    )


def test_browsers_of_allowed_origins_may_call(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_CORS_ORIGINS": "https://apps.example"})
    for origin, allowed in (("https://apps.example", "https://apps.example"), ("https://evil.example", None)):
        preflight = httpx.options(
            f"{server.base_url}/v1/me",
            headers={
                "Origin": origin,
                "Access-Control-Request-Method": "GET",
                "Access-Control-Request-Headers": "authorization",
            },
            trust_env=False,
        )
        assert preflight.headers.get("Access-Control-Allow-Origin") == allowed


def test_log_lines_carry_the_request_id_and_no_secret(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_LOG_FORMAT": "json"})
    token = server.add_user("alice")
    answer = httpx.get(
        f"{server.base_url}/v1/me?secret=in-query",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )
    log = (server.directory / "server.log").read_text()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (line,) = [
        line
        for line in lines
        if line["request_id"] == answer.headers["X-Request-ID"] and "/v1/me" in line["message"]
    ]
    assert " 200 " in line["message"]
    assert token not in log
    assert server.admin_token not in log
    assert "in-query" not in log


def test_a_hub_that_is_down_is_503_never_401(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_HUB_URL": "http://127.0.0.1:9"})
    answer = httpx.get(f"{server.base_url}/v1/me", headers={"Authorization": "Bearer hf_x"}, trust_env=False)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
