"""The operators' overview of the platform."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
from tests.waiting import eventually

from collidium import __version__
from collidium.testing.plugin import StartServer

from .conftest import ok, operating, signed_in


def test_overview_of_a_fresh_platform(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_MOCK_SECONDS": "100000", "PLATFORM_MONTHLY_NODE_HOURS": "1.5"})
    with operating(server) as operator, signed_in(server, "alice") as alice:
        eventually(lambda: ok(operator.get("/admin/overview"))["followers"] != [])
        shown = ok(operator.get("/admin/overview"))
        (follower,) = shown.pop("followers")
        assert follower["process"].endswith(f":{server.pid}")
        looked, at = (datetime.fromisoformat(text) for text in (follower["looked_at"], shown.pop("at")))
        assert at - timedelta(minutes=1) < looked <= at
        # Where a sandbox confines models and onnxruntime is installed, this server runs them.
        shown.pop("models_not_run")
        assert [task["name"] for task in shown.pop("tasks_silent")] == sorted(
            task["name"] for task in operator.get("/v1/benchmark/tasks").json()
        )
        assert shown == {
            "version": __version__,
            "run_mode": "mock",
            "runner": "mock",
            "submissions_frozen": False,
            "frozen_at": None,
            "frozen_by": None,
            "frozen_note": None,
            "queued": 0,
            "running": 0,
            "oldest_queued_at": None,
            "month": f"{datetime.now(UTC):%Y-%m}",
            "node_hours_today": 0,
            "requests_today": 0,
            "node_hours_month": 0,
            "requests_month": 0,
            "monthly_node_hours": 1.5,
            "failed": 0,
            "finished": 0,
            "failure_rate": 0,
            "webhooks_pending": 0,
            "models_waiting": 0,
            "oldest_model_at": None,
            "files_waiting": 0,
            "files_not_retried": 0,
            "plugins_failed": [],
        }
        alice.post("/v1/simulate", json={"channel": "ttbar", "events": 10, "pileup": 0})
        shown = ok(operator.get("/admin/overview"))
        assert (shown["queued"], shown["node_hours_today"], shown["node_hours_month"]) == (1, 0.333, 0.333)
        assert (shown["requests_today"], shown["requests_month"]) == (1, 1)


def test_what_waits_is_counted_and_who_follows_is_shown(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_FOLLOW_REQUESTS": "false"})
    with operating(server) as operator, signed_in(server, "alice") as alice:
        ordered = [
            alice.post("/v1/simulate", json={"channel": "ttbar", "events": 1, "pileup": pileup}).json()
            for pileup in (0, 1)
        ]
        shown = ok(operator.get("/admin/overview"))
        assert (shown["queued"], shown["running"], shown["followers"]) == (2, 0, [])
        assert shown["oldest_queued_at"] == ordered[0]["created_at"]
        following = start_server()
        eventually(lambda: len(ok(operator.get("/admin/overview"))["followers"]) == 1)
        following.stop()
        assert ok(operator.get("/admin/overview"))["followers"] == []


def test_a_freeze_is_shown_with_its_note(operator: httpx.Client) -> None:
    ok(operator.post("/admin/freeze?frozen=true&note=the+hub+is+down"))
    shown = ok(operator.get("/admin/overview"))
    assert (shown["submissions_frozen"], shown["frozen_by"]) == (True, "admin")
    assert (shown["frozen_note"], shown["frozen_at"] is not None) == ("the hub is down", True)
    assert operator.get("/readyz").json()["submissions_frozen"] is True
    assert ok(operator.post("/admin/freeze?frozen=false")) == {"submissions_frozen": False}
    assert operator.get("/readyz").json()["submissions_frozen"] is False
    assert ok(operator.get("/admin/overview"))["frozen_at"] is None
