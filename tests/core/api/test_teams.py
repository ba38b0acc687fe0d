"""Teams, and challenges that only members may enter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import cache
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event
from typing import Any

import httpx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.cli.conftest import Caller
from tests.waiting import eventually

from collidium.runtime import display_names
from collidium.submissions.teams import LONGEST_NAME, MAX_INVITATIONS, NAME
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import EVENTS, SignIn, calling, name_of, ok, operating, parquet, refused, signed_in, slowly
from .test_challenges import is_arriving, share

_serial = count()


@pytest.fixture
def admin(operator: httpx.Client) -> httpx.Client:
    return operator


@pytest.fixture
def people(platform: ServerProcess) -> Iterator[SignIn]:
    """Signs people in, under names that no other test has."""
    number = next(_serial)
    with ExitStack() as clients:
        yield cache(lambda name: clients.enter_context(signed_in(platform, f"{name}-{number}")))


@pytest.fixture
def where(admin: httpx.Client, request: pytest.FixtureRequest) -> str:
    """The address of a challenge of the test's own, with teams of three."""
    name = request.function.__name__.removeprefix("test_").replace("_", "-").lower()[:60].strip("-")
    body = {"name": name, "task": "tracking", "team_size": 3}
    assert admin.post("/admin/challenges", json=body).status_code == 201
    return f"/v1/challenges/{name}"


def new_team(client: httpx.Client, where: str, name: str) -> Any:
    return ok(client.post(f"{where}/team", json={"name": name}), 201)["team"]


def code_of(client: httpx.Client, where: str, **fields: Any) -> str:
    return str(ok(client.post(f"{where}/team/invitations", json=fields), 201)["code"])


def join(client: httpx.Client, where: str, code: str) -> httpx.Response:
    return client.post(f"{where}/join", json={"code": code})


def test_a_team_is_one_participant(admin: httpx.Client, people: SignIn, where: str, oracle: pa.Table) -> None:
    admin.patch(f"/admin{where.removeprefix('/v1')}", json={"submissions_per_day": 4, "final_submissions": 1})
    alice, bob, carol = people("alice"), people("bob"), people("carol")
    alone = alice.post(f"{where}/submit", content=share(oracle, 0.2)).json()["submission_id"]
    refused(alice.post(f"{where}/team", json={"name": "Ω"}), 409, "withdraw these submissions first")
    assert alice.post(f"/v1/submissions/{alone}/withdraw").status_code == 200
    assert new_team(alice, where, " Team Ωμέγα ")["name"] == "Team Ωμέγα"
    code = code_of(alice, where)
    assert join(bob, where, code).json()["team"]["members"] == [name_of(alice), name_of(bob)]
    # The file that she had withdrawn is a submission of the team, once.
    again = [alice.post(f"{where}/submit", content=share(oracle, 0.2)).json() for _ in range(2)]
    assert [receipt["deduplicated"] for receipt in again] == [False, True]
    assert again[0]["submission_id"] == again[1]["submission_id"] != alone
    sent = [
        client.post(f"{where}/submit", content=content).json()
        for client, content in ((alice, share(oracle, 0.4)), (bob, share(oracle, 0.9)))
    ]
    carol.post(f"{where}/submit", content=share(oracle, 0.6))
    # Three of the team, and what a member had sent alone.
    refused(bob.post(f"{where}/submit", content=share(oracle, 0.5)), 429, "4 submissions per day")
    places = alice.get(f"{where}/leaderboard").json()
    assert [(place["hub_username"], place["team"]) for place in places] == [
        (name_of(bob), "Team Ωμέγα"),
        (name_of(carol), None),
    ]
    first, second = (f"/v1/submissions/{receipt['submission_id']}" for receipt in sent)
    theirs = bob.get(f"{where}/team/submissions?limit=2")
    assert [(one["hub_username"], one["submission_id"]) for one in theirs.json()] == [
        (name_of(bob), sent[1]["submission_id"]),
        (name_of(alice), sent[0]["submission_id"]),
    ]
    (oldest,) = bob.get(theirs.links["next"]["url"]).json()
    assert oldest["submission_id"] == again[0]["submission_id"], "not what she had sent alone"
    assert carol.get(f"{where}/team/submissions").status_code == 404
    assert alice.get(first).json()["team"] == "Team Ωμέγα"
    both = {"final": True, "code_url": "https://code.example/"}
    assert bob.patch(first, json=both).status_code == 403, "only who submitted links"
    assert alice.get(first).json()["chosen_at"] is None, "nothing was done"
    assert bob.patch(first, json={"final": True}).json()["chosen_at"], "any of the team chooses"
    refused(alice.patch(second, json={"final": True}), 409, "1 are chosen already")
    assert carol.patch(first, json={"final": False}).status_code == 403
    assert bob.post(f"{first}/withdraw").status_code == 403, "only who submitted withdraws"
    (team,) = carol.get(f"{where}/teams").json()
    assert (team["captain"], team["members"]) == (name_of(alice), [name_of(alice), name_of(bob)])
    refused(bob.delete(f"{where}/team/members/{name_of(bob)}"), 409, "has submitted")
    bob_name, alice_name = name_of(bob), name_of(alice)

    def ban(name: str, banned: bool = True) -> str:
        assert admin.post("/admin/ban", json={"hub_username": name, "banned": banned}).is_success
        return str(carol.get(f"{where}/teams").json()[0]["captain"])

    assert ban(bob_name) == alice_name
    assert [place["hub_username"] for place in carol.get(f"{where}/leaderboard").json()] == [
        name_of(carol),
        alice_name,
    ]
    # A captain who is banned is replaced by the first who is not, and stays that.
    assert [ban(alice_name), ban(bob_name, False), ban(alice_name, False)] == [alice_name, bob_name, bob_name]


def test_a_file_of_two_members_at_once_is_one_submission(
    admin: httpx.Client, people: SignIn, where: str, oracle: pa.Table
) -> None:
    admin.patch(f"/admin{where.removeprefix('/v1')}", json={"submissions_per_day": 2})
    members = [people(name) for name in ("alice", "bob")]
    new_team(members[0], where, "twins")
    assert join(members[1], where, code_of(members[0], where)).is_success
    content = share(oracle, 0.5)
    with ThreadPoolExecutor(4) as threads:
        sent = list(threads.map(lambda one: one.post(f"{where}/submit", content=content).json(), members * 2))
    assert len({receipt["submission_id"] for receipt in sent}) == 1
    assert sorted(receipt["deduplicated"] for receipt in sent) == [False, True, True, True]
    assert members[1].get(f"{where}/quota").json()["submissions_left"] == 1
    kept = members[0].get(f"/v1/submissions/{sent[0]['submission_id']}").json()
    other = members[kept["hub_username"] == name_of(members[0])]
    query = {"model_repo": f"{name_of(other)}/model"}
    refused(other.post(f"{where}/submit", params=query, content=content), 409, "only its owner can link it")


def test_an_organiser_takes_teams_apart(
    admin: httpx.Client, people: SignIn, where: str, oracle: pa.Table
) -> None:
    challenge, alice, bob = f"/admin{where.removeprefix('/v1')}", people("alice"), people("bob")
    admin.patch(challenge, json={"submissions_per_day": 2})
    new_team(alice, where, "Ωμέγα/1")
    join(bob, where, code_of(alice, where))
    for client, keep in ((alice, 0.4), (bob, 0.9)):
        assert client.post(f"{where}/submit", content=share(oracle, keep)).is_success
    names = [name_of(alice), name_of(bob)]

    def places() -> list[tuple[str, str | None]]:
        return [(one["hub_username"], one["team"]) for one in alice.get(f"{where}/leaderboard").json()]

    def left(client: httpx.Client) -> int:
        return int(client.get(f"{where}/quota").json()["submissions_left"])

    for size in (0, 1):
        refused(admin.patch(challenge, json={"team_size": size}), 409, "take such teams apart first")
    assert (places(), left(alice)) == ([(names[1], "Ωμέγα/1")], 0)
    was = admin.delete(f"{challenge}/teams/members/{names[1].upper()}")
    assert (was.status_code, was.json()["members"]) == (200, names), was.text
    assert (places(), left(alice), left(bob)) == ([(names[1], None), (names[0], "Ωμέγα/1")], 1, 1)
    for one in (names[1], "unknown-there", "%00"):
        assert admin.delete(f"{challenge}/teams/members/{one}").status_code == 404
    for name, status in (("other", 404), ("\x00", 422), ("ωΜΈΓΑ/1", 200)):
        answer = admin.post(f"{challenge}/teams/dissolve", json={"name": name})
        assert answer.status_code == status, answer.text
    assert places() == [(names[1], None), (names[0], None)]
    assert alice.get(f"{where}/teams").json() == []
    assert admin.patch(challenge, json={"team_size": 0}).status_code == 200
    actions = [(one["action"], one["target"]) for one in admin.get("/admin/audit").json()[:4]]
    assert {("remove_from_team", names[1]), ("dissolve_team", where[15:])} <= set(actions), actions


def test_the_roster_has_who_never_submitted(
    admin: httpx.Client, people: SignIn, where: str, oracle: pa.Table
) -> None:
    challenge = f"/admin{where.removeprefix('/v1')}"
    admin.patch(challenge, json={"submissions_per_day": 3})
    alice, bob, carol = people("alice"), people("bob"), people("carol")
    names = [name_of(client) for client in (alice, bob, carol)]
    added = [f"{names[2]}-absent", names[2].upper()]
    assert admin.post(f"{challenge}/members", json={"hub_usernames": added}).json()["added"] == 2
    new_team(alice, where, "Ω")
    assert join(bob, where, code_of(alice, where)).is_success
    for client, part in ((alice, 0.4), (carol, 0.6)):
        client.post(f"{where}/submit", content=share(oracle, part)).raise_for_status()
    first = admin.get(f"{challenge}/roster?limit=2")
    rest = admin.get(f"{challenge}/roster", params={"cursor": first.json()[-1]["hub_username"]})
    shown = ("hub_username", "team", "captain", "member", "submissions", "submissions_left")
    assert [[entry[key] for key in shown] for entry in first.json() + rest.json()] == [
        [names[0], "Ω", True, False, 1, 2],
        [names[1], "Ω", False, False, 0, 2],
        [names[2], None, False, True, 1, 2],
        [added[0], None, False, True, 0, 3],
    ]
    assert first.json()[1]["joined_at"] is None
    assert admin.post(f"{challenge}/close").is_success
    assert {entry["submissions_left"] for entry in admin.get(f"{challenge}/roster").json()} == {0}
    assert alice.get(f"{where}/quota").json()["submissions_left"] == 0


def test_a_file_belongs_to_the_senders_team_when_it_is_kept(
    platform: ServerProcess, people: SignIn, where: str, oracle: pa.Table
) -> None:
    alice, bob = people("alice"), people("bob")
    new_team(bob, where, "quick")
    code, file, go_on = code_of(bob, where), parquet(oracle), Event()

    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(lambda: alice.post(f"{where}/submit", content=slowly(file, Event(), go_on)))
        eventually(lambda: is_arriving(platform, where[15:]))
        assert join(alice, where, code).status_code == 200
        go_on.set()
        assert sent.result().status_code == 200, sent.result().text
    assert [place["team"] for place in bob.get(f"{where}/leaderboard").json()] == ["quick"]


def test_teams_are_joined_and_left(people: SignIn, where: str) -> None:
    alice, bob, carol = people("alice"), people("bob"), people("carol")
    new_team(alice, where, "Ä")
    assert alice.get(f"{where}/team").json()["team_admits"] is True
    code = code_of(alice, where, uses=2)
    for asked, team in ((code, "Ä"), ("nonsense", None)):
        found = bob.get(f"{where}/team", params={"invitation": asked}).json()
        assert (found["team"], (found["invited_to"] or {}).get("name")) == (None, team)
    assert join(alice, where, code).json()["team"]["members"] == [name_of(alice)], "of itself: nothing"
    join(bob, where, code), join(bob, where, code)
    assert join(carol, where, code).status_code == 200, "those who were in used nothing up"
    refused(bob.post(f"{where}/team/invitations", json={}), 403, "captain")
    refused(bob.delete(f"{where}/team/members/{name_of(carol)}"), 403, "captain")
    refused(bob.delete(f"{where}/team/members/unknown"), 404, "not in the team")
    code = code_of(alice, where, uses=5)
    refused(join(people("dora"), where, code), 409, "has its 3 members")
    full = alice.get(f"{where}/team").json()
    assert (full["team_admits"], full["team_stays"]) == (False, False)
    left = carol.delete(f"{where}/team/members/{name_of(carol)}").json()
    assert (left["team"], left["admitted"]) == (None, True)
    refused(join(carol, where, code), 404, "no such invitation")
    assert alice.delete(f"{where}/team/members/{name_of(alice).upper()}").json()["team"] is None
    assert bob.get(f"{where}/team").json()["team"]["captain"] == name_of(bob), "who was next"
    bob.delete(f"{where}/team/members/{name_of(bob)}")
    assert bob.get(f"{where}/teams").json() == []
    refused(bob.post(f"{where}/team/invitations", json={}), 404, "you are in no team")


def test_invitations_of_a_team_are_limited(people: SignIn, where: str) -> None:
    new_team(people("alice"), where, "inviting")
    for _ in range(MAX_INVITATIONS):
        code_of(people("alice"), where)
    refused(people("alice").post(f"{where}/team/invitations", json={}), 409, "invitations already")


def test_teams_are_fixed_at_a_date(admin: httpx.Client, people: SignIn, where: str) -> None:
    alice, bob = people("alice"), people("bob")
    new_team(alice, where, "early")
    code = code_of(alice, where)
    soon = datetime.now(UTC) + timedelta(seconds=1)
    challenge = f"/admin{where.removeprefix('/v1')}"
    bad = {"closes_at": soon.isoformat(), "teams_frozen_at": (soon + timedelta(days=1)).isoformat()}
    refused(admin.patch(challenge, json=bad), 422, "teams_frozen_at")
    frozen = admin.patch(challenge, json={"teams_frozen_at": soon.isoformat()})
    assert frozen.status_code == 200, frozen.text
    eventually(lambda: datetime.now(UTC) > soon)
    refused(join(bob, where, code), 409, "have been fixed since")
    refused(bob.post(f"{where}/team", json={"name": "late"}), 409, "have been fixed since")
    refused(alice.delete(f"{where}/team/members/{name_of(alice)}"), 409, "have been fixed since")
    fixed = alice.get(f"{where}/team").json()
    assert (fixed["team_admits"], fixed["team_stays"]) == (False, True)
    for client in (alice, bob):
        refused(client.post("/v1/challenges/tracking/team", json={"name": "x"}), 409, "has no teams")


@pytest.mark.parametrize(
    "name",
    ["", "  ", "a\ab", "\u202eabc", "=1+1", "x" * 10_000, "erased-1", "\0", "\u200d", "\u3164", "\u200d=1+1"],
)
def test_names_that_cannot_be_shown_are_refused(people: SignIn, admin: httpx.Client, name: str) -> None:
    admin.post("/admin/challenges", json={"name": "named-teams", "task": "tracking", "team_size": 2})
    answer = people("alice").post("/v1/challenges/named-teams/team", json={"name": name})
    assert answer.status_code == 422, answer.text
    assert people("alice").get("/v1/challenges/named-teams/teams").json() == []


@given(st.text(max_size=64) | st.text("\t\x1f =+-@aé", max_size=8))
def test_the_document_allows_every_name_that_teams_have(name: str) -> None:
    stored = display_names.normalized(name)
    if stored and display_names.problem(stored, LONGEST_NAME) is None:
        assert NAME.fullmatch(name)


def test_names_of_teams_differ_by_more_than_case(people: SignIn, where: str) -> None:
    new_team(people("alice"), where, "Ångström")
    for name in ("A\u030aNGSTRÖM", "Ång\u200dström"):
        refused(people("bob").post(f"{where}/team", json={"name": name}), 409, "already")


def test_a_team_cannot_have_the_name_of_an_account(people: SignIn, where: str) -> None:
    alice, bob = people("alice"), people("bob")
    ok(bob.get("/v1/me"))
    wide = "".join(chr(ord(each) + 0xFEE0) for each in name_of(bob).upper())
    for name in (name_of(bob), name_of(bob).upper(), wide):
        refused(alice.post(f"{where}/team", json={"name": name}), 409, "the name of another account")
    assert new_team(bob, where, name_of(bob))["name"] == name_of(bob)


def test_a_word_of_two_scripts_is_refused(people: SignIn, where: str) -> None:
    for name in ("\u0430lice", "Team \u0391lpha", "\u03bcTracks", "x_\u0410\u0411C"):
        answer = people("alice").post(f"{where}/team", json={"name": name})
        refused(answer, 422, "mixes letters of several scripts")


PEOPLE = [
    *(
        "Жанна д'Арк",
        "Nguyễn Văn Ánh",
        "山田太郎 たろう",
        "サーバー",
        "O\u2019Brien-Łuczak",
        "محمد",
        "שלום",
        "तेज़",
        "김하늘",
    ),
    "Team Альфа",
]


def test_names_of_one_script_are_never_refused(people: SignIn, where: str) -> None:
    for number, name in enumerate(PEOPLE):
        assert new_team(people(f"one{number}"), where, name)["name"] == name


def test_a_name_that_looks_like_another_participants_is_marked(
    people: SignIn, where: str, oracle: pa.Table
) -> None:
    ok(people("ace").post(f"{where}/submit", content=parquet(oracle)))
    assert new_team(people("alice"), where, "coca")["name"] == "coca"
    cyrillic = "\u0441\u043e\u0441\u0430"
    assert new_team(people("bob"), where, cyrillic)["name"] == f"{cyrillic} (Cyrillic)"
    carol = people("carol")
    assert new_team(carol, where, "paypal")["name"] == "paypal"
    assert new_team(people("dora"), where, "paypaI")["name"] == f"paypaI (@{name_of(people('dora'))})"
    erin, number = people("erin"), name_of(people("ace")).partition("-")[2]
    alike = f"\u0430\u0441\u0435-{number}"
    assert new_team(erin, where, alike)["name"] == f"{alike} (Cyrillic)"
    names = [team["name"] for team in ok(erin.get(f"{where}/teams"))]
    assert f"{alike} (Cyrillic)" in names


def test_eight_at_once_use_an_invitation_twice(admin: httpx.Client, people: SignIn, where: str) -> None:
    """And who uses two invitations at once is in one team."""
    admin.patch(f"/admin{where.removeprefix('/v1')}", json={"team_size": 20})
    alice, dora = people("alice"), people("dora")
    new_team(alice, where, "first"), new_team(dora, where, "other")
    code = code_of(alice, where, uses=2)
    eight = [people(f"p{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda one: join(one, where, code).status_code, eight))
    assert sorted(statuses) == [200, 200] + [409] * 6
    out = next(one for one, status in zip(eight, statuses, strict=True) if status == 409)
    alone = next(one for one in eight if one is not out and one.get(f"{where}/team").json()["team"] is None)
    codes = [code_of(dora, where), code_of(dora, where)]
    new_team(alone, where, "third")
    codes[0] = code_of(alone, where)
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda code: join(out, where, code).status_code, codes))
    assert sorted(both) == [200, 409]
    teams = out.get(f"{where}/teams").json()
    assert sum(name_of(out) in team["members"] for team in teams) == 1


def status_before_body(client: httpx.Client, path: str) -> int:
    """The answer to a request whose body is announced and never sent."""
    with closing(HTTPConnection(str(client.base_url.host), client.base_url.port or 80, timeout=60)) as sent:
        sent.putrequest("POST", path)
        sent.putheader("Authorization", client.headers["Authorization"])
        sent.putheader("Content-Length", str(10**8))  # a small one would be waited for
        sent.endheaders()
        return sent.getresponse().status


def test_only_members_submit(admin: httpx.Client, people: SignIn, where: str, oracle: pa.Table) -> None:
    challenge, submit = f"/admin{where.removeprefix('/v1')}", f"{where}/submit"
    alice, bob, carol = people("alice"), people("bob"), people("carol")
    assert admin.patch(challenge, json={"access": "members"}).json()["access"] == "members"
    name = name_of(alice)
    bad = admin.post(f"{challenge}/members", json={"hub_usernames": [name, "a b", "", "ä"]})
    assert (bad.status_code, len(bad.json()["errors"])) == (422, 3)
    assert admin.get(f"{challenge}/members").json() == [], "all or none"
    for added in (1, 0):
        done = admin.post(f"{challenge}/members", json={"hub_usernames": [name.upper()]}).json()
        assert (done["added"], done["members"]) == (added, 1)
    assert alice.post(submit, content=parquet(oracle)).status_code == 200

    assert carol.get(where).json()["card"], "the card is visible"
    for path in (submit, f"{where}/check"):
        assert status_before_body(carol, path) == 403
    refused(carol.post(submit, content=b"PAR1"), 403, "is for its members")
    refused(carol.post(f"{where}/team", json={"name": "x"}), 403, "is for its members")
    made = admin.post(f"{challenge}/invitations", json={"uses": 1})
    code = made.json()["code"]
    for _ in range(2):
        joined = join(bob, where, code).json()
        assert (joined["challenge"], joined["admitted"], joined["team"]) == (where[15:], True, None)
    refused(join(carol, where, code), 409, "has no uses left")
    refused(join(carol, where, code[:-1] + "!"), 404, "no such invitation")
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    refused(admin.post(f"{challenge}/invitations", json={"expires_at": past}), 422, "in the past")
    soon = datetime.now(UTC) + timedelta(seconds=1)
    code = admin.post(f"{challenge}/invitations", json={"expires_at": soon.isoformat()}).json()["code"]
    eventually(lambda: datetime.now(UTC) > soon)
    refused(join(carol, where, code), 409, "ended on")
    assert bob.post(submit, content=parquet(oracle)).status_code == 200
    assert admin.delete(f"{challenge}/members/{name_of(bob)}").status_code == 200
    assert bob.post(submit, content=parquet(oracle)).status_code == 403
    assert admin.delete(f"{challenge}/members/{name_of(bob)}").status_code == 404


def test_commands_name_challenge_and_team(platform: ServerProcess, where: str, oracle: pa.Table) -> None:
    run, name = Caller(platform, "pupil4"), where.removeprefix("/v1/challenges/")
    (platform.directory / "oracle.parquet").write_bytes(parquet(oracle))
    run.data("team", "new", name, "Team X")
    run.data("submit", name, "oracle.parquet")
    assert f"  {name}  " in run("submissions").stdout
    assert "pupil4, Team X  " in run("leaderboard", name).stdout
    scored = run.data("score", name, "oracle.parquet", "--from", str(EVENTS))
    assert (scored["task"], scored["scores"]["trackml_weighted_efficiency"]) == ("tracking", 1)
    without = run("score", name, "oracle.parquet")
    assert (without.returncode, "name a dataset with --from" in without.stderr) == (3, True)


def test_a_truth_that_no_database_can_hold_is_invalid(admin: httpx.Client) -> None:
    body = {"name": "no-truth", "task": "tracking", "truth_version": "\x00"}
    refused(admin.post("/admin/challenges", json=body), 422, "truth_version")


def test_an_organisation_of_the_hub_is_admitted(start_platform: StartServer) -> None:
    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.headers["Authorization"].removeprefix("Bearer ")
            orgs = [{"name": "CERN", "roleInOrg": "read"}, {"name": "@cern.ch"}] if name == "ada" else []
            body = json.dumps({"type": "user", "name": name, "orgs": orgs}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Hub) as hub,
        ThreadPoolExecutor(1) as thread,
        ExitStack() as stop,
    ):
        thread.submit(hub.serve_forever)
        stop.callback(hub.shutdown)
        server = start_platform({"PLATFORM_HUB_URL": f"http://127.0.0.1:{hub.server_port}"})
        body = {"name": "for-cern", "task": "tracking", "access": "members", "organisation": "cern"}
        with operating(server) as admin:
            assert admin.post("/admin/challenges", json=body).status_code == 201
        for name, status in (("ada", 422), ("bob", 403)):
            with calling(server, Authorization=f"Bearer {name}") as client:
                shown = client.get("/v1/challenges/for-cern/team").json()
                assert shown["admitted"] is (status == 422)
                assert client.post("/v1/challenges/for-cern/submit", content=b"x").status_code == status
        with operating(server) as admin, calling(server, Authorization="Bearer ada") as client:
            edited = ok(admin.patch("/admin/challenges/for-cern", json={"organisation": "@cern.ch"}))
            assert edited["organisation"] == "@cern.ch"
            assert client.get("/v1/challenges/for-cern/team").json()["admitted"] is False
            refused(client.post("/v1/challenges/for-cern/submit", content=b"x"), 403, "an address @cern.ch")


def test_an_organiser_has_the_members_of_one_challenge(
    platform: ServerProcess, admin: httpx.Client, where: str
) -> None:
    challenge = f"/admin{where.removeprefix('/v1')}"
    body = {"name": "olga", "scopes": ["benchmarks"], "challenge": where[15:]}
    token = admin.post("/admin/operators", json=body).json()["token"]
    with operating(platform, token) as olga:
        assert olga.post(f"{challenge}/members", json={"hub_usernames": ["zoe"]}).status_code == 200
        assert olga.post(f"{challenge}/invitations", json={"uses": 30}).status_code == 201
        assert [one["hub_username"] for one in olga.get(f"{challenge}/members").json()] == ["zoe"]
        assert olga.delete(f"{challenge}/members/zoe").status_code == 200
        assert olga.post(f"{challenge}/teams/dissolve", json={"name": "x"}).status_code == 404
        # Other challenges: test_operators.py tries all paths.
        assert olga.get("/admin/challenges/tracking/members").status_code == 403


def test_a_course_is_let_in_by_commands(platform: ServerProcess) -> None:
    run, pupil = Caller(platform, "teacher1"), Caller(platform, "pupil1")
    run.data("challenge", "new", "course-2", "--task", "tracking", "--access", "members", "--team-size", "2")
    (platform.directory / "students.csv").write_text("\ufeffname;email\npupil2;\nPupil3;\n", encoding="utf-8")
    assert run.data("challenge", "members", "course-2", "--csv", "students.csv")["added"] == 2
    assert len(run.data("challenge", "members", "course-2")) == 2
    code = run("challenge", "invite", "course-2", "--uses", "2").stdout.strip()
    assert pupil.data("team", "show", "course-2")["admitted"] is False
    assert pupil.data("team", "join", "course-2", code)["admitted"] is True
    assert pupil.data("team", "new", "course-2", "Über")["team"]["name"] == "Über"
    invited = pupil("team", "invite", "course-2")
    code = invited.stdout.strip()
    assert f"/leaderboard/course-2/team?invitation={code}" in "".join(invited.stderr.split())
    friend = Caller(platform, "pupil2")
    assert friend.data("team", "join", "course-2", code)["team"]["captain"] == "pupil1"
    assert "Über" in friend("team", "show", "course-2").stdout
    assert "pupil1, pupil2" in friend("team", "list", "course-2").stdout
    roster = run("challenge", "roster", "course-2").stdout
    assert "Über (captain)" in roster
    assert "Pupil3" in roster
    (platform.directory / "bad.csv").write_text("zoe\n../x\na b\n")
    bad = run("challenge", "members", "course-2", "--csv", "bad.csv")
    assert (bad.returncode, "../x" in bad.stderr, "a b" in bad.stderr) == (3, True, True), bad.stderr
    assert pupil.data("team", "remove", "course-2", "pupil2")["team"]["members"] == ["pupil1"]
    assert pupil.data("team", "leave", "course-2")["team"] is None
    assert run.data("challenge", "teams", "course-2") == []
    again = friend("team", "join", "course-2", code)
    assert (again.returncode, "no such invitation" in again.stderr) == (3, True)
    assert run.data("challenge", "members", "course-2", "--remove", "pupil3")["hub_username"] == "Pupil3"
