"""Splits that close other challenges: who may make them, what is said first, and what users see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from tests.waiting import eventually

from collidium.testing.server import ServerProcess, run_command

from .conftest import SignIn, ok, operating, parquet, refused

NAME, DATE = "spring-2027", "2099-06-30T12:00:00Z"
HELD = f"{NAME} holds back events of the same truth until it closes on 2099-06-30 at 12:00 UTC"
TRACKING, SUBMIT = "/v1/benchmark/tracking", f"/v1/challenges/{NAME}/submit"


@pytest.fixture
def admin(fresh_platform: ServerProcess) -> Iterator[httpx.Client]:
    with operating(fresh_platform) as client:
        yield client


def new(admin: httpx.Client, name: str = NAME, **fields: Any) -> None:
    ok(admin.post("/admin/challenges", json={"name": name, "task": "tracking", **fields}), 201)


def organiser(admin: httpx.Client) -> str:
    body = {"name": "otto", "scopes": ["benchmarks"], "challenge": NAME}
    return str(ok(admin.post("/admin/operators", json=body))["token"])


def test_all_that_shows_a_closed_task_says_why(
    fresh_platform: ServerProcess, admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    alice = caller("alice")
    before = ok(alice.get(TRACKING))
    assert (before["accepts_submissions"], before["reason"]) == (True, None)
    new(admin, public_percent=50, closes_at=DATE)
    card = ok(alice.get(TRACKING))
    assert (card["accepts_submissions"], card["reason"]) == (False, HELD)
    (listed,) = [each for each in ok(alice.get("/v1/benchmark/tasks")) if each["name"] == "tracking"]
    assert (listed["accepts_submissions"], listed["reason"]) == (False, HELD)
    (status,) = [each for each in ok(admin.get("/admin/tasks")) if each["name"] == "tracking"]
    assert status["reason"] == HELD
    silent = {each["name"]: each["reason"] for each in ok(admin.get("/admin/overview"))["tasks_silent"]}
    assert silent["tracking"] == HELD
    quota = ok(alice.get("/v1/challenges/tracking/quota"))
    assert (quota["submissions_left"], quota["reason"]) == (0, HELD)
    challenges = {each["name"]: each["reason"] for each in ok(alice.get("/v1/challenges"))}
    assert challenges == challenges | {"tracking": HELD, NAME: None}
    assert ok(alice.get("/v1/challenges/tracking"))["reason"] == HELD
    refused(alice.post(f"{TRACKING}/submit", content=parquet(oracle)), 409, HELD)
    roster = "/admin/challenges/tracking/roster"
    assert {each["submissions_left"] for each in ok(admin.get(roster))} <= {0}
    for page in ("/leaderboard/tracking", "/leaderboard/tracking/submit"):
        text = " ".join(alice.get(page).text.split())
        assert (HELD in text, "Submit predictions" in text, "left today" in text) == (True, False, False)
    variables = {"PLATFORM_BACKEND": fresh_platform.base_url, "HF_TOKEN": "none"}
    shown = run_command(
        ("tasks", "tracking"), fresh_platform.environment | variables, fresh_platform.directory
    )
    assert HELD in " ".join(shown.stdout.split())
    assert ok(alice.post(SUBMIT, content=parquet(oracle)))["scores"]
    ok(admin.post(f"/admin/challenges/{NAME}/close"))
    eventually(lambda: ok(alice.get(TRACKING))["accepts_submissions"])
    assert ok(alice.post(f"{TRACKING}/submit", content=parquet(oracle)))["scores"]


def test_an_organiser_splits_only_where_nothing_else_scores(
    fresh_platform: ServerProcess, admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    new(admin)
    ok(caller("alice").post(SUBMIT, content=parquet(oracle)))
    rescoring, split = f"/admin/challenges/{NAME}/rescoring", {"public_percent": 50, "apply": True}
    with operating(fresh_platform, organiser(admin)) as otto:
        why = "may be split only where nothing else scores on its truth, and tracking does"
        refused(otto.post(rescoring, json=split), 403, why)
        preview = ok(otto.get(f"/admin/challenges/{NAME}/split?public_percent=50"))
        assert (preview["closes"], preview["allowed"]) == (["tracking"], False)
        ok(otto.post(rescoring, json=split | {"apply": False}), 202)
        eventually(lambda: ok(otto.get(rescoring))["ended_at"])
        assert ok(admin.get(TRACKING))["accepts_submissions"]
        ok(admin.post("/admin/challenges/tracking/close"))
        eventually(lambda: ok(admin.get("/v1/challenges/tracking"))["results_at"])
        assert ok(otto.get(f"/admin/challenges/{NAME}/split?public_percent=50"))["allowed"]
        ok(otto.post(rescoring, json=split), 202)
        eventually(lambda: ok(otto.get(rescoring))["ended_at"])
    assert ok(admin.get(f"/v1/challenges/{NAME}"))["public_percent"] == 50


def test_editing_needs_the_scope_for_all_to_close_others(
    fresh_platform: ServerProcess, admin: httpx.Client
) -> None:
    new(admin)
    edit, body = f"/admin/challenges/{NAME}", {"public_percent": 50}
    with operating(fresh_platform, organiser(admin)) as otto:
        refused(otto.patch(edit, json=body), 403, "and tracking does")
    scoped = ok(admin.post("/admin/operators", json={"name": "bert", "scopes": ["benchmarks"]}))["token"]
    with operating(fresh_platform, scoped) as bert:
        ok(bert.patch(edit, json=body))
    assert not ok(admin.get(TRACKING))["accepts_submissions"]


def test_an_organiser_closes_others_for_no_longer(fresh_platform: ServerProcess, admin: httpx.Client) -> None:
    new(admin, public_percent=50, closes_at=DATE)
    edit = f"/admin/challenges/{NAME}"
    with operating(fresh_platform, organiser(admin)) as otto:
        for later in ("2100-01-01T00:00:00Z", None):
            answer = otto.patch(edit, json={"closes_at": later})
            refused(answer, 403, "tracking would accept no submissions for longer")
        ok(otto.patch(edit, json={"closes_at": "2099-01-01T00:00:00Z", "title": "Spring"}))
        ok(otto.post(f"{edit}/open?closes_at=2099-01-01T00:00:00Z"))
        refused(otto.post(f"{edit}/open?closes_at=2099-02-01T00:00:00Z"), 403, "for longer")
    ok(admin.patch(edit, json={"closes_at": "2100-01-01T00:00:00Z"}))


def test_commands_say_first_what_a_split_closes(fresh_platform: ServerProcess, admin: httpx.Client) -> None:
    new(admin, "twin-2027", public_percent=20)
    variables = {"PLATFORM_BACKEND": fresh_platform.base_url, "ADMIN_TOKEN": fresh_platform.admin_token}

    def said(*words: str) -> str:
        done = run_command(
            ("challenge", *words), fresh_platform.environment | variables, fresh_platform.directory
        )
        assert done.returncode == 0, done.stderr
        return " ".join(done.stderr.split())

    text = said("new", "course-1", "--task", "tracking", "--public", "50", "--closes", DATE)
    closes = "With 50 per cent public, tracking will accept no submissions until"
    assert f"{closes} course-1 closes on 2099-06-30 12:00 UTC" in text
    new(admin, "course-2")
    assert f"{closes} course-2 is closed by command" in said("rescore", "course-2", "--public", "50")
    text = said("edit", "course-2", "--public", "30", "--closes", DATE)
    assert "course-1, tracking will accept no submissions until course-2 closes on 2099-06-30" in text
    unknown = admin.get("/admin/challenges/none-1/split?public_percent=5")
    refused(unknown, 404, "no challenge 'none-1'")
    query = "public_percent=5&closes_at=2099-01-01"
    assert admin.get(f"/admin/challenges/{NAME}/split?{query}").status_code == 422
