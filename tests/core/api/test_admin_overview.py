"""What operators see at one look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from tests.waiting import eventually

from collidium import __version__
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import operating, signed_in


def overview(operator: httpx.Client) -> dict[str, Any]:
    answer = operator.get("/admin/overview")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def test_a_fresh_platform_at_one_look(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_MOCK_SECONDS": "100000", "PLATFORM_MONTHLY_NODE_HOURS": "1.5"})
    with operating(server) as operator, signed_in(server, "alice") as alice:
        eventually(lambda: overview(operator)["followers"] != [])
        shown = overview(operator)
        (follower,) = shown.pop("followers")
        assert follower["process"].endswith(f":{server.pid}")
        looked, at = (datetime.fromisoformat(text) for text in (follower["looked_at"], shown.pop("at")))
        assert at - timedelta(minutes=1) < looked <= at
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
            "plugins_failed": [],
        }
        alice.post("/v1/simulate", json={"channel": "ttbar", "events": 10, "pileup": 0})
        shown = overview(operator)
        assert (shown["queued"], shown["node_hours_today"], shown["node_hours_month"]) == (1, 0.333, 0.333)
        assert (shown["requests_today"], shown["requests_month"]) == (1, 1)


def test_what_waits_is_counted_and_who_follows_is_shown(start_server: StartServer) -> None:
    server = start_server({"PLATFORM_FOLLOW_REQUESTS": "false"})
    with operating(server) as operator, signed_in(server, "alice") as alice:
        ordered = [
            alice.post("/v1/simulate", json={"channel": "ttbar", "events": 1, "pileup": pileup}).json()
            for pileup in (0, 1)
        ]
        shown = overview(operator)
        assert (shown["queued"], shown["running"], shown["followers"]) == (2, 0, [])
        assert shown["oldest_queued_at"] == ordered[0]["created_at"]
        following = start_server()
        eventually(lambda: len(overview(operator)["followers"]) == 1)
        following.stop()
        assert overview(operator)["followers"] == []


def test_a_freeze_shows_since_when_and_what_for(platform: ServerProcess, operator: httpx.Client) -> None:
    assert operator.post("/admin/freeze?frozen=true&note=the+hub+is+down").status_code == 200
    first = overview(operator)
    assert (first["submissions_frozen"], first["frozen_by"]) == (True, "admin")
    assert first["frozen_note"] == "the hub is down"
    assert operator.get("/readyz").json()["submissions_frozen"] is True
    logged = operator.get("/admin/audit?limit=1").json()[0]
    assert (logged["action"], logged["details"]) == ("freeze", {"note": "the hub is down"})
    operator.post("/admin/freeze?frozen=true")
    assert overview(operator)["frozen_note"] == "the hub is down"
    operator.post("/admin/freeze?frozen=true&note=still")
    again = overview(operator)
    assert (again["frozen_note"], again["frozen_at"]) == ("still", first["frozen_at"])
    assert operator.post("/admin/freeze?frozen=false").json() == {"submissions_frozen": False}
    assert operator.get("/readyz").json()["submissions_frozen"] is False
    assert operator.get("/admin/audit?limit=1").json()[0]["action"] == "unfreeze"
    thawed = overview(operator)
    assert (thawed["submissions_frozen"], thawed["frozen_at"], thawed["frozen_note"]) == (False, None, None)
