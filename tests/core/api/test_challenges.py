"""Challenges over HTTP: dates, withheld events, permissions, disqualification and results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from tests.core.cli.conftest import Caller
from tests.waiting import eventually

from collidium import database
from collidium.challenges.models import Arrival, Challenge
from collidium.client import Client
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess, run_command

from .conftest import SignIn, credits_of, import_truth, ok, operating, parquet, refused, slowly, spoiled

NAME = "spring-2027"
SUBMIT = f"/v1/challenges/{NAME}/submit"
METRIC = "trackml_weighted_efficiency"


@pytest.fixture
def fresh_platform(start_platform: StartServer) -> ServerProcess:
    return start_platform({"PLATFORM_DEADLINE_GRACE_SECONDS": "20"})


@pytest.fixture
def admin(fresh_platform: ServerProcess) -> Iterator[httpx.Client]:
    with operating(fresh_platform) as client:
        yield client


def new(admin: httpx.Client, **fields: Any) -> Any:
    body = {"name": NAME, "task": "tracking", "rewarded": True} | fields
    return ok(admin.post("/admin/challenges", json=body), 201)


def new_organiser(admin: httpx.Client) -> str:
    """Add an organiser of the challenge; returns the token."""
    body = {"name": "otto", "scopes": ["benchmarks"], "challenge": NAME}
    return str(ok(admin.post("/admin/operators", json=body))["token"])


def close(admin: httpx.Client, name: str = NAME) -> Any:
    return ok(admin.post(f"/admin/challenges/{name}/close"))


def rescored(server: ServerProcess, *options: str) -> Any:
    variables = {"PLATFORM_BACKEND": server.base_url, "ADMIN_TOKEN": server.admin_token}
    arguments = ("challenge", "rescore", *options, "--json")
    done = run_command(arguments, server.environment | variables, server.directory)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def good_at(oracle: pa.Table, event: int) -> bytes:
    """Perfect for one event, nothing for the other."""
    tracks = np.where(oracle["event_id"].to_numpy() == event, oracle["track_id"].to_numpy(), -1)
    return parquet(oracle.set_column(2, "track_id", pa.array(tracks)))


def share(oracle: pa.Table, fraction: float) -> bytes:
    """So much of each event."""
    return parquet(spoiled(oracle, fraction))


def is_arriving(server: ServerProcess, challenge: str = NAME) -> bool:
    """Whether a file for the challenge is being received."""

    async def exists() -> bool:
        async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
            return await Arrival.exists(challenge=challenge)

    return asyncio.run(exists())


def has_results(client: httpx.Client) -> bool:
    return client.get(f"/v1/challenges/{NAME}").json()["results_at"] is not None


def board(client: httpx.Client, **query: Any) -> dict[str, float]:
    places = client.get(f"/v1/challenges/{NAME}/leaderboard", params=query).json()
    return {place["hub_username"]: place["scores"][METRIC] for place in places}


def test_what_is_held_back_decides_in_the_end(
    fresh_platform: ServerProcess, caller: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    new(admin, public_percent=50, practice=True)
    alice, bob = caller("alice"), caller("bob")
    receipts = [
        client.post(SUBMIT, content=good_at(oracle, event)).json() for client, event in ((alice, 3), (bob, 4))
    ]
    public = board(alice)
    assert sorted(public.values()) == [0, 1], "each was good at one event, and one event counts"
    (leader, loser) = public
    card = alice.get(f"/v1/challenges/{NAME}").json()["card"]
    assert (card["phase"], card["public_percent"]) == ("public", 50)
    assert {metric["floor"] for metric in card["metrics"]} == {None}, "floors are of all events"
    assert [credits_of(client) for client in (alice, bob)] == [10, 10], "nothing is earned yet"
    assert alice.get("/v1/leaderboard/tracking").json() == [], "the task's own challenge is another"
    again = bob.post(SUBMIT, content=good_at(oracle, 4)).json()
    assert again == receipts[1] | {"deduplicated": True}

    with ThreadPoolExecutor(4) as threads:
        closed = list(threads.map(lambda _: close(admin), range(4)))
    eventually(lambda: has_results(alice))
    assert {answer["state"] for answer in closed} <= {"closed", "practice"}
    assert list(board(alice).items()) == [(loser, 1), (leader, 0)]
    people = {"alice": alice, "bob": bob}
    assert (credits_of(people[loser]), credits_of(people[leader])) == (110, 10)
    actions = [line["action"] for line in admin.get("/admin/audit").json()]
    assert actions == ["end_challenge", "close_challenge", "new_challenge"]
    first = alice.get(f"/v1/submissions/{receipts[0]['submission_id']}").json()
    assert [earlier["scores"] for earlier in first["earlier_scores"]] == [receipts[0]["scores"]]
    assert alice.get(f"/v1/challenges/{NAME}").json()["state"] == "practice"
    resent = bob.post(SUBMIT, content=good_at(oracle, 4)).json()
    assert (resent["submission_id"], resent["deduplicated"]) == (receipts[1]["submission_id"], True)
    practised = alice.post(SUBMIT, content=parquet(oracle)).json()
    assert (practised["scores"][METRIC], practised["credits_earned"]) == (1, 0)
    kept = alice.get(f"/v1/submissions/{practised['submission_id']}").json()
    assert kept["unranked"] == "submitted for practice, after closing"
    assert list(board(alice, all=True).items()) == [(loser, 1), (leader, 0)]
    assert admin.post(f"/admin/challenges/{NAME}/open").status_code == 409, "final results were shown"
    assert fresh_platform.run("ledger", "audit").returncode == 0


def test_scores_on_withheld_events_are_shown_nowhere(
    admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    """Two files that differ in what is held back alone are answered alike, but for what names the file."""
    new(admin, public_percent=50)
    alice = caller("alice")
    good = {event: alice.post(SUBMIT, content=good_at(oracle, event)).json() for event in (3, 4)}
    public = next(event for event, receipt in good.items() if receipt["scores"][METRIC] == 1)
    whole = alice.post(SUBMIT, content=parquet(oracle)).json()
    names = {"submission_id": "", "sha256": ""}
    assert whole | names == good[public] | names
    places = alice.get(f"/v1/challenges/{NAME}/leaderboard", params={"all": True}).json()
    tied = [place for place in places if place["scores"][METRIC] == 1]
    assert [place["submission_id"] for place in tied] == [
        receipt["submission_id"] for receipt in sorted([good[public], whole], key=lambda r: r == whole)
    ]
    assert [place["rank"] for place in tied] == [1, 1]
    assert alice.get(f"/v1/submissions/{whole['submission_id']}").json()["earlier_scores"] == []


def test_dates_open_and_close_by_themselves(admin: httpx.Client, caller: SignIn, oracle: pa.Table) -> None:
    alice = caller("alice")
    assert credits_of(alice) == 10
    opens = datetime.now(UTC) + timedelta(seconds=3)
    dates = {"opens_at": opens.isoformat(), "closes_at": (opens + timedelta(seconds=4)).isoformat()}
    assert new(admin, public_percent=50, **dates)["state"] == "upcoming"
    refused(alice.post(SUBMIT, content=parquet(oracle)), 409, "it opens on")
    eventually(lambda: alice.post(SUBMIT, content=parquet(oracle)).status_code == 200)
    assert credits_of(alice) == 10
    eventually(lambda: has_results(alice))
    refused(alice.post(SUBMIT, content=share(oracle, 0.5)), 409, "it closed on")
    assert ok(alice.post(SUBMIT, content=parquet(oracle)))["deduplicated"] is True
    assert caller("bob").post(SUBMIT, content=parquet(oracle)).status_code == 409
    assert credits_of(alice) == 110


def test_results_wait_for_an_upload_that_began_in_time(
    fresh_platform: ServerProcess, admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    new(admin, public_percent=50)
    alice, file, go_on = caller("alice"), parquet(oracle), Event()

    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(lambda: alice.post(SUBMIT, content=slowly(file, Event(), go_on)))
        eventually(lambda: is_arriving(fresh_platform))
        assert close(admin)["state"] == "closed"
        assert not has_results(alice)
        assert caller("bob").post(SUBMIT, content=file).status_code == 409
        assert not has_results(alice)
        go_on.set()
        assert sent.result().status_code == 200, sent.result().text
    eventually(lambda: has_results(alice))
    assert board(alice) == {"alice": 1}


def test_one_row_for_a_participant_and_their_choice_counts(
    admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    new(admin, public_percent=50, final_submissions=1)
    alice, bob = caller("alice"), caller("bob")
    sent = [alice.post(SUBMIT, content=share(oracle, part)).json() for part in (0.9, 0.3, 0.6)]
    bob.post(SUBMIT, content=share(oracle, 0.8))
    assert list(board(alice)) == ["alice", "bob"]
    assert len(alice.get(f"/v1/challenges/{NAME}/leaderboard", params={"all": True}).json()) == 4
    chosen = alice.patch(f"/v1/submissions/{sent[1]['submission_id']}", json={"final": True})
    assert chosen.json()["chosen_at"], chosen.text
    assert bob.patch(f"/v1/submissions/{sent[0]['submission_id']}", json={"final": True}).status_code == 403
    close(admin)
    eventually(lambda: has_results(alice))
    assert list(board(alice)) == ["bob", "alice"]
    best = alice.get(f"/v1/submissions/{sent[0]['submission_id']}").json()
    assert best["unranked"] == "not among its participant's final submissions"
    own = alice.get("/v1/me/submissions", params={"task": NAME}).json()
    assert best["submission_id"] in [one["submission_id"] for one in own]
    every = alice.get(f"/v1/challenges/{NAME}/results", params={"all": True}).json()
    assert sum(one["submission_id"] == best["submission_id"] for one in every) == 1
    assert {one["submission_id"]: one["status"] for one in every}[best["submission_id"]] == "not_final"


def test_places_that_are_not_chosen_have_the_best(
    admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    new(admin, public_percent=50, final_submissions=2)
    alice = caller("alice")
    best, worst, other = (
        alice.post(SUBMIT, content=share(oracle, part)).json()["submission_id"] for part in (0.9, 0.3, 0.6)
    )
    assert alice.patch(f"/v1/submissions/{worst}", json={"final": True}).status_code == 200
    close(admin)
    eventually(lambda: has_results(alice))
    every = alice.get(f"/v1/challenges/{NAME}/results", params={"all": True}).json()
    found = {one["submission_id"]: one["status"] for one in every}
    assert found == {best: "ranked", worst: "ranked", other: "not_final"}


def test_a_split_after_submissions_scores_them_again(
    fresh_platform: ServerProcess, caller: SignIn, admin: httpx.Client, oracle: pa.Table
) -> None:
    alice = caller("alice")
    first = alice.post("/v1/benchmark/tracking/submit", content=good_at(oracle, 3)).json()
    assert credits_of(alice) > 10
    earned = credits_of(alice)
    split = admin.patch("/admin/challenges/tracking", json={"public_percent": 50})
    refused(split, 409, "rescore tracking --public 50")
    for percent in ("0", "100"):
        assert fresh_platform.run("challenge", "rescore", "tracking", "--public", percent).returncode == 2
    preview = rescored(fresh_platform, "tracking", "--public", "50")
    assert (preview["ended_at"] is not None, preview["applies"]) == (True, False)
    assert alice.get("/v1/benchmark/tracking").json()["phase"] is None
    applied = rescored(fresh_platform, "tracking", "--public", "50", "--apply")
    assert (applied["applies"], applied["changes"]) == (True, preview["changes"])
    assert (preview["seen_whole"], applied["seen_whole"]) == (1, 1)
    import_truth(fresh_platform)  # of the same truth changes nothing
    assert alice.get("/v1/benchmark/tracking").json()["phase"] == "public"
    now = alice.get(f"/v1/submissions/{first['submission_id']}").json()
    assert now["scores"][METRIC] in {0, 1} != first["scores"][METRIC]
    with Client(fresh_platform.base_url, admin_token=fresh_platform.admin_token) as client:
        client.admin_close_challenge("tracking")
        eventually(lambda: client.challenge("tracking").phase == "final")
    assert earned <= credits_of(alice) <= 110, "what was paid stays paid, and each metric pays once"
    assert fresh_platform.run("ledger", "audit").returncode == 0


def test_bad_challenges_are_refused_and_nothing_is_written(admin: httpx.Client) -> None:
    soon, past = (datetime.now(UTC) + timedelta(days=days) for days in (1, -1))
    before = admin.get("/v1/challenges").json()
    for wrong, count in (
        ({"name": "jets"}, 1),
        ({"name": "Spring-2027"}, 1),
        ({"name": "x-" * 40}, 1),
        ({"closes_at": past.isoformat()}, 1),
        ({"opens_at": soon.isoformat(), "closes_at": soon.isoformat()}, 1),
        ({"name": "a_b", "opens_at": past.isoformat(), "closes_at": past.isoformat()}, 4),
        ({"closes_at": "2099-01-01T00:00:00"}, 1),
        ({"closes_at": "9999-12-31T23:59:59-23:59"}, 1),
        ({"public_percent": 0, "final_submissions": 0, "title": "\x07"}, 3),
        ({"title": "Jets \u202e3202"}, 1),
    ):
        answer = admin.post("/admin/challenges", json={"name": NAME, "task": "tracking"} | wrong)
        assert (answer.status_code, len(answer.json().get("errors", ()))) == (422, count), answer.text
    assert admin.post("/admin/challenges", json={"name": NAME, "task": "nothing"}).status_code == 404
    assert admin.get("/v1/challenges").json() == before
    assert admin.get("/admin/audit").json() == []
    new(admin, opens_at=soon.isoformat())
    assert admin.post("/admin/challenges", json={"name": NAME, "task": "tracking"}).status_code == 409
    assert admin.post(f"/admin/challenges/{NAME}/close").status_code == 409, "it has not opened"
    for name in ("nothing", "%00", "x" * 500, "%ed%a0%80", "no-such"):
        assert admin.post(f"/admin/challenges/{name}/close").status_code == 404
        assert admin.get(f"/v1/challenges/{name}").status_code == 404
        assert admin.get(f"/v1/challenges/{name}/leaderboard").status_code == 404


def test_a_disqualified_best_gives_way_and_may_come_back(
    admin: httpx.Client, caller: SignIn, oracle: pa.Table, fresh_platform: ServerProcess
) -> None:
    new(admin)
    alice, bob = caller("alice"), caller("bob")
    best = alice.post(SUBMIT, content=parquet(oracle)).json()["submission_id"]
    other = bob.post(SUBMIT, content=share(oracle, 0.5)).json()["submission_id"]
    (rich, poor), where = map(credits_of, (alice, bob)), f"/admin/challenges/{NAME}/submissions/{best}"
    assert (rich > 10, poor) == (True, 10)
    body = {"reason": "trained on <b>these</b> events", "take_back": True}
    preview = admin.get(f"{where}/standing").json()
    assert preview["applied"] is False
    assert list(board(alice)) == ["alice", "bob"], "a preview changes nothing"
    done = admin.post(f"{where}/disqualify", json=body).json()
    assert done == preview | {"applied": True}
    assert {one["submission_id"]: (one["rank_before"], one["rank"]) for one in done["changes"]} == {
        best: (1, None),
        other: (2, 1),
    }
    assert list(board(alice)) == ["bob"]
    assert (credits_of(alice), credits_of(bob)) == (10, sum(one["earns"] for one in done["changes"]) + 10)
    shown = alice.get(f"/v1/submissions/{best}").json()
    assert shown["unranked"] == f"disqualified: {body['reason']}"
    assert admin.post(f"{where}/disqualify", json=body).status_code == 409
    assert bob.post(f"/v1/submissions/{best}/withdraw").status_code == 403
    results = f"/v1/challenges/{NAME}/results"
    first, last = alice.get(results, params={"all": "true"}).json()
    assert (first["submission_id"], first["rank"], first["status"]) == (other, 1, "ranked")
    expected = (best, None, "disqualified", body["reason"])
    assert (last["submission_id"], last["rank"], last["status"], last["reason"]) == expected
    assert f",disqualified,{body['reason']}," in alice.get(results, params={"all": 1, "format": "csv"}).text
    assert [one["submission_id"] for one in alice.get(results).json()] == [other]
    page = alice.get(f"/leaderboard/{NAME}/results").text
    assert "trained on &lt;b&gt;these&lt;/b&gt; events" in page
    assert admin.post(f"{where}/reinstate").json()["applied"] is True
    assert list(board(alice)) == ["alice", "bob"]
    for banned, names in ((True, ["bob"]), (False, ["alice", "bob"])):
        assert admin.post("/admin/ban", json={"hub_username": "alice", "banned": banned}).is_success
        assert list(board(bob)) == names
    refused(bob.post(f"/v1/submissions/{other}/withdraw"), 409, "earned credits")
    file = share(oracle, 0.4)
    receipt = bob.post(SUBMIT, content=file).json()
    assert receipt["unranked"] is None
    worse = receipt["submission_id"]
    run = Caller(fresh_platform, "teacher")
    shown = run("challenge", "disqualify", NAME, worse, "--reason", "copied", "--preview")
    assert (shown.stdout, shown.stderr) == ("No rank would change.\n", "This was a preview.\n")
    assert bob.post(f"/v1/submissions/{worse}/withdraw").json()["unranked"] == "withdrawn by its owner"
    heading, newest, *_ = run("challenge", "submissions", NAME).stdout.splitlines()
    assert f"{METRIC}  " in heading
    assert "withdrawn by its owner" in newest
    assert " ± " in newest
    assert bob.post(f"/v1/submissions/{worse}/withdraw").status_code == 409
    again = bob.post(SUBMIT, content=file).json()
    assert (again["submission_id"], again["unranked"]) == (worse, "withdrawn by its owner")
    assert list(board(alice)) == ["alice", "bob"]
    assert fresh_platform.run("ledger", "audit").returncode == 0


def test_an_organiser_runs_one_challenge_and_no_money(
    fresh_platform: ServerProcess, admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    new(admin)
    sent = caller("alice").post(SUBMIT, content=parquet(oracle)).json()["submission_id"]
    where, body = f"/admin/challenges/{NAME}", {"reason": "by hand"}
    with operating(fresh_platform, new_organiser(admin)) as otto:
        assert otto.patch(where, json={"announcement": "Welcome."}).status_code == 200
        assert otto.patch(where, json={"announcement": "Room 12."}).status_code == 200
        announced = [one["at"] for one in otto.get(f"/v1/challenges/{NAME}").json()["announcements"]]
        corrections = [{"at": announced[0], "text": "Room 13."}, {"at": announced[1], "text": None}]
        for correction in corrections:
            (first, *_) = otto.patch(f"{where}/announcements", json=correction).json()["announcements"]
            assert (first["at"], first["text"]) == (announced[0], "Room 13.")
            assert first["edited_at"] > announced[0]
        assert len(otto.get(f"/v1/challenges/{NAME}").json()["announcements"]) == 1
        assert otto.patch(f"{where}/announcements", json=corrections[1]).status_code == 404
        seen = otto.get(f"{where}/submissions/{sent}/standing")
        assert seen.json()["changes"], "what it would do is shown to organisers, too"
        assert otto.post(f"{where}/submissions/{sent}/disqualify", json=body).status_code == 200
        (listed,) = otto.get(f"{where}/submissions", params={"user": "alice"}).json()
        assert (listed["submission_id"], listed["unranked"]) == (sent, "disqualified: by hand")
        (member,) = otto.get(f"{where}/roster").json()
        assert (member["hub_username"], member["submissions"]) == ("alice", 1)
        assert member["joined_at"] == member["last_submitted_at"] == listed["submitted_at"]
        assert otto.post(f"{where}/submissions/{sent}/reinstate").status_code == 200
        # Other paths are forbidden, too: test_operators.py tries them all.
        assert otto.patch(where, json={"rewarded": True}).status_code == 403
        taking = body | {"take_back": True}
        assert otto.post(f"{where}/submissions/{sent}/disqualify", json=taking).status_code == 403
        assert otto.post(f"{where}/submissions/{'0' * 32}/disqualify", json=body).status_code == 404
    assert {line["actor"] for line in admin.get("/admin/audit").json()} == {"admin", "otto"}


@pytest.mark.parametrize("command", ["new", "create"])
def test_a_name_of_one_word_is_refused_as_help_says(platform: ServerProcess, command: str) -> None:
    run = Caller(platform, f"organiser-{command}")
    rule = "two words or more of a-z and 0-9, joined by hyphens"
    assert rule in " ".join(run("challenge", command, "--help").stdout.split())
    events = ("--events", "3", "--eval", "2") if command == "create" else ("--public", "30")
    refused = run("challenge", command, "course", "--task", "tracking", *events)
    assert refused.returncode == 3, refused
    assert f"{rule}, such as course-2027" in " ".join(refused.stderr.split())


def test_a_challenge_is_run_by_commands(fresh_platform: ServerProcess) -> None:
    run = Caller(fresh_platform, "teacher")
    date = "2099-01-01T00:00Z"
    made = run.data("challenge", "new", "course-1", "--task", "tracking", "--closes", date)
    assert (made["state"], made["closes_at"]) == ("open", "2099-01-01T00:00:00+00:00")
    assert "earns the reward" not in run("tasks", "course-1").stdout
    assert "earns the reward" in run("tasks", "tracking").stdout
    unzoned = run("challenge", "edit", "course-1", "--closes", "2099-01-01T00:00")
    assert (unzoned.returncode, "no time zone" in unzoned.stderr) == (2, True)
    assert "now: open at once" in run("challenge", "edit", "--help").stdout
    for now in ("now", "never"):
        run("challenge", "edit", "course-1", "--opens", "2098-01-01T00:00Z")
        assert run.data("challenge", "edit", "course-1", "--opens", now)["state"] == "open"
    assert run("challenge", "edit", "course-1", "--closes", "now").returncode == 2
    edited = run("challenge", "edit", "course-1", "--closes", "never", "--announce", "One day *more*.")
    assert "One day *more*." in edited.stdout, edited.stdout
    refreshed = run("challenge", "edit", "course-1", "--refresh-hidden", "0" * 12)
    assert (refreshed.returncode, "there is no truth" in refreshed.stderr) == (3, True), refreshed.stderr
    corrected = run("challenge", "edit", "course-1", "--correct", "1", "Two days more.").stdout
    assert ("edited" in corrected, "Two days more." in corrected, "One" in corrected) == (True, True, False)
    assert run("challenge", "edit", "course-1", "--withdraw", "2").returncode == 2
    assert "Two days" not in run("challenge", "edit", "course-1", "--withdraw", "1").stdout
    listed = run("challenge", "list").stdout
    assert ("course-1" in listed, "no truth yet" in listed) == (True, True), "of the tasks without truth"
    assert run("challenge", "close", "course-1").returncode == 0
    late = run("challenge", "edit", "course-1", "--closes", date)
    assert (late.returncode, "challenge reopen course-1" in late.stderr) == (3, True), late.stderr
    assert run.data("challenge", "reopen", "course-1")["state"] == "open"
    shown = run("challenge", "show", "course-1")
    assert ("left today" in shown.stdout, shown.stderr) == (True, "")
    assert "course-1" in run("operator", "add", "otto", "--challenge", "course-1").stderr
    assert run.data("challenge", "roster", "course-1") == []
    assert run.data("challenge", "submissions", "course-1") == []
    assert run("challenge", "export", "course-1").stdout.startswith("rank,rank_low,rank_high")
    assert run.data("challenge", "export", "course-1") == []
    refused = run("challenge", "new", "course-1", "--task", "tracking")
    assert (refused.returncode, "course-1" in refused.stderr) == (3, True)


def test_no_other_challenge_shows_what_is_held_back(
    fresh_platform: ServerProcess, admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    async def lists(listed: bool) -> None:
        async with database.connected(fresh_platform.environment["PLATFORM_DATABASE_URL"]):
            await Challenge.filter(name=NAME).update(listed=listed)

    new(admin, public_percent=50)
    alice = caller("alice")
    refused(alice.post("/v1/benchmark/tracking/submit", content=good_at(oracle, 3)), 409, NAME)
    twin = {"name": "twin-2027", "task": "tracking", "public_percent": 50}
    ok(admin.post("/admin/challenges", json=twin), 201)
    # The same part is public in both.
    ok(alice.post("/v1/challenges/twin-2027/submit", content=good_at(oracle, 3)))
    assert close(admin, "twin-2027")["results_wait_for"] == [NAME]
    waiting = alice.get("/v1/challenges/twin-2027").json()
    assert (waiting["results_at"], waiting["results_wait_for"]) == (None, [NAME])
    asyncio.run(lists(False))
    waiting = alice.get("/v1/challenges/twin-2027").json()
    assert (waiting["results_at"], waiting["results_wait_for"]) == (None, []), "no draft is named"
    hidden = alice.post("/v1/benchmark/tracking/submit", content=good_at(oracle, 3))
    assert (hidden.status_code, NAME in hidden.text) == (409, False)
    asyncio.run(lists(True))
    close(admin)
    eventually(lambda: has_results(alice))
    eventually(lambda: alice.get("/v1/challenges/twin-2027").json()["results_at"] is not None)
    assert alice.post("/v1/benchmark/tracking/submit", content=good_at(oracle, 3)).status_code == 200


def test_the_same_gain_is_paid_once(
    fresh_platform: ServerProcess, admin: httpx.Client, caller: SignIn, oracle: pa.Table
) -> None:
    new(admin)
    alice, bob = caller("alice"), caller("bob")
    alice.post(SUBMIT, content=parquet(oracle)).json()
    rich = credits_of(alice)
    bob.post(SUBMIT, content=share(oracle, 0.5))
    with operating(fresh_platform, new_organiser(admin)) as otto:
        for number in range(2):
            best = alice.get(f"/v1/challenges/{NAME}/leaderboard").json()[0]["submission_id"]
            ok(otto.post(f"/admin/challenges/{NAME}/submissions/{best}/disqualify", json={"reason": "x"}))
            assert credits_of(bob) == 10, "an organiser pays no one"
            alice.post(SUBMIT, content=parquet(oracle.slice(number + 1)))  # as good, but for a hit
            assert credits_of(alice) == rich


def test_dates_that_have_passed_cannot_be_changed(admin: httpx.Client) -> None:
    day = timedelta(days=1)
    opens, closes = datetime.now(UTC) + day, datetime.now(UTC) + 2 * day
    new(admin, opens_at=opens.isoformat(), closes_at=closes.isoformat())
    opened = admin.post(f"/admin/challenges/{NAME}/open").json()
    assert (opened["state"], opened["closes_at"] is None) == ("open", False)
    close(admin)
    eventually(lambda: has_results(admin))
    for name, change, status, reason in (
        (NAME, {"public_percent": 50}, 409, "has closed"),
        (NAME, {"closes_at": None}, 422, "to open it again"),
        ("tracking", {"opens_at": opens.isoformat()}, 422, "open already"),
    ):
        refused(admin.patch(f"/admin/challenges/{name}", json=change), status, reason)
