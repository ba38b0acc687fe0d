"""Pages of teams, invitations and challenges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.core.api.conftest import operating
from tests.core.servers import write_oracle
from tests.waiting import eventually

from collidium.client import Client
from collidium.testing.server import ServerProcess

from .visiting import Visitor

SignIn = Callable[[str], Visitor]
BOARD = "/leaderboard/team-course"
TEAM = f"{BOARD}/team"


@pytest.fixture
def admin(web: ServerProcess, shared_truth: None) -> Iterator[httpx.Client]:
    with operating(web) as client:
        yield client


@pytest.fixture
def visitor(web: ServerProcess, token: Callable[[str], str]) -> Iterator[SignIn]:
    with ExitStack() as stack:

        def signed_in(name: str) -> Visitor:
            found = stack.enter_context(Visitor(web.base_url))
            found.sign_in(token(name))
            return found

        yield signed_in


def test_a_team_is_created_and_joined_by_links(
    web: ServerProcess, admin: httpx.Client, visitor: SignIn, token: Callable[[str], str]
) -> None:
    body: dict[str, object] = {"name": "team-course", "task": "tracking", "public_percent": 60}
    body |= {"team_size": 2, "access": "members"}
    assert admin.post("/admin/challenges", json=body).status_code == 201
    code = admin.post("/admin/challenges/team-course/invitations", json={"uses": 2}).json()["code"]
    ada, ben = visitor("team-ada"), visitor("team-ben")
    assert "members only" in ada.get(BOARD).text
    assert f'value="{code}"' in ada.get(f"{TEAM}?invitation={code}").text
    form = {"action": "new", "name": "Ω & <b>", "csrf_token": ada.csrf}
    ada.cookies.clear()
    again = ada.sign_in_again(ada.post(TEAM, data=form, headers=ada.own), token("team-ada")).text
    assert 'name="name" value="Ω &amp; &lt;b&gt;"' in again
    refused = ada.fill_in(TEAM, action="new", name="Ω")
    assert (refused.status_code, "is for its members" in refused.text) == (403, True)
    assert ada.fill_in(TEAM, action="join", code="nonsense").status_code == 404
    for person in (ada, ben):
        assert person.fill_in(TEAM, action="join", code=code).status_code == 303
    assert ada.fill_in(TEAM, action="new", name="<b>Oo</b>").headers["Location"] == TEAM
    page = ada.fill_in(TEAM, action="invite").text
    assert "<b>Oo" not in page
    link = re.search(r"<code>(\S+invitation=\S+)</code>", page)
    assert link is not None, page
    code = link[1].partition("invitation=")[2]
    shown = ben.get(f"{TEAM}?invitation={code}").text
    assert "<bdi>team-ada</bdi> invites you to team <bdi>&lt;b&gt;Oo" in shown
    assert shown.index(">Join<") < shown.index(">Make the team<")
    assert "Make an invitation" in ada.get(TEAM).text
    assert ben.fill_in(TEAM, action="join", code=code).status_code == 303
    assert "Make an invitation" not in ada.get(TEAM).text, "the team is full"
    assert ">Leave<" in ben.get(TEAM).text
    assert ">Remove<" not in ben.get(TEAM).text, "that is the captain's"
    path = web.directory / "oracle.parquet"
    write_oracle(path)
    with Client(web.base_url, token("team-ben")) as client:
        sent = client.submit("team-course", path).submission_id
    assert "team <bdi>&lt;b&gt;Oo" in ada.get(BOARD).text
    assert "<bdi>team-ada</bdi>, <bdi>team-ben</bdi>" in ada.get(f"{BOARD}/results").text
    own = "?user=team-ada"
    assert f"/leaderboard/submissions/{sent}" in ada.get(BOARD + own).text, "her team's is hers"
    mine = ada.get("/leaderboard/mine").text
    assert f'has <a href="/leaderboard/submissions/{sent}">rank 1</a>' in mine
    assert f"submissions/{sent}" not in ada.get("/leaderboard/mine?task=tracking").text
    assert not re.search(">(Leave|Remove)<", ada.get(TEAM).text)
    stays = ada.fill_in(TEAM, action="remove", account="team-ben")
    assert (stays.status_code, "has submitted" in stays.text) == (409, True)
    with Visitor(web.base_url) as anonymous:
        assert anonymous.get(f"{TEAM}?invitation=x").status_code == 401
    assert ada.get("/leaderboard/nothing-here/team").status_code == 404

    page = f"/leaderboard/submissions/{sent}"
    shown = ada.get(page).text
    assert "Rank 1 of the leaderboard" in shown
    assert "not the current one" not in shown, "the truth is the challenge's"
    assert "collidium check team-course" in shown
    assert "Withdraw it" not in shown, "that is its sender's"
    assert ada.fill_in(page, action="choose").status_code == 303
    for shown in (page, "/leaderboard/mine", BOARD):
        assert "chosen" in ben.get(shown).text
    listed = re.search(rf'href="{page}">.*?team-ben.*?chosen', ada.get(TEAM).text, re.DOTALL)
    assert listed, "what a member sent, for the others"
    with Client(web.base_url, token("team-ada")) as client:
        assert client.submit("team-course", path).submission_id == sent
    again = ada.get(f"{BOARD}/submit?receipt={sent}&again=1").text
    assert "submitted before, by team-ben" in again
    for person, count in ((ada, 1), (visitor("team-cleo"), 0)):
        board = person.get(BOARD).text
        assert (board.count(">chosen<"), board.count('class="mine"')) == (count, count)
    receipt = ben.get(f"{BOARD}/submit?receipt={sent}").text
    assert "Rank 1" in receipt
    assert f'href="{page}#counts">Choose or withdraw' in receipt
    assert ada.fill_in(page, action="withdraw").status_code == 403
    assert ben.fill_in(page, action="drop").status_code == 303
    assert "Choose for the final results" in ben.get(page).text
    assert ben.fill_in(page, action="choose").status_code == 303
    assert ben.fill_in(page, action="withdraw").status_code == 303
    shown = ben.get(page).text
    assert "no rank: withdrawn by its owner" in shown
    assert "chosen" not in shown
    assert "Whether it counts" not in shown
    # Until then the task itself takes nothing: it would show what is held back.
    assert admin.post("/admin/challenges/team-course/close").is_success
    eventually(lambda: admin.get("/v1/challenges/team-course").json()["results_at"] is not None)
    closed = ada.get(f"{BOARD}/submit").text
    assert "No submissions are accepted since" in closed
    assert f'href="{BOARD}/results"' in closed


def test_the_form_of_what_has_not_opened_has_its_date(web: ServerProcess, admin: httpx.Client) -> None:
    body = {"name": "later-course", "task": "tracking", "opens_at": "2099-01-01T09:00:00Z"}
    assert admin.post("/admin/challenges", json=body).status_code == 201
    page = admin.get("/leaderboard/later-course/submit").text
    assert "Submissions are accepted from" in page
    listed = r'href="/leaderboard/later-course">later-course</a> .*upcoming.* opens .*2099-01-01'
    eventually(lambda: re.search(listed, admin.get("/").text))  # the front page is kept for seconds
    assert "2099-01-01 09:00" in page


def test_a_short_challenge_that_is_open_comes_first(
    web: ServerProcess, admin: httpx.Client, token: Callable[[str], str]
) -> None:
    body: dict[str, object] = {
        "name": "short-course",
        "task": "tracking",
        "closes_at": "2099-01-03T09:00:00Z",
    }
    assert admin.post("/admin/challenges", json=body).status_code == 201
    assert admin.get("/leaderboard").headers["Location"] == "/leaderboard/short-course"
    path = web.directory / "oracle.parquet"
    write_oracle(path)
    with Client(web.base_url, token("short-ada")) as client:
        client.submit("short-course", path)
    hours = re.compile(r"what its scores rest on\"><time [^>]*>\d{4}-\d\d-\d\d \d\d:\d\d UTC")
    for days, found in ((1, True), (5, False)):
        closes_at = (datetime.now(UTC) + timedelta(days=days)).isoformat()
        assert admin.patch("/admin/challenges/short-course", json={"closes_at": closes_at}).is_success
        assert bool(hours.search(admin.get("/leaderboard/short-course").text)) is found
    assert admin.post("/admin/challenges/short-course/close").is_success


def test_rules_and_announcements_are_sanitised(web: ServerProcess, admin: httpx.Client) -> None:
    hostile = "**fair** <script>alert(1)</script> [bad](javascript:alert(1)) <img src=x onerror=alert(1)>"
    body = {"name": "hostile-course", "task": "tracking", "rules": hostile, "announcement": hostile}
    assert admin.post("/admin/challenges", json=body).status_code == 201
    (announced,) = admin.get("/v1/challenges/hostile-course").json()["announcements"]
    assert ", edited <time" not in admin.get("/leaderboard/hostile-course").text
    correction = {"at": announced["at"], "text": hostile * 2}
    assert admin.patch("/admin/challenges/hostile-course/announcements", json=correction).is_success
    assert ", edited <time" in admin.get("/leaderboard/hostile-course").text
    for page in ("", "/results"):
        text = admin.get(f"/leaderboard/hostile-course{page}").text
        assert "<strong>fair</strong>" in text
        for bad in ("<script>alert", 'href="javascript', "<img src=x"):
            assert bad not in text
