"""The operators' endpoints."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import name_of


@pytest.mark.parametrize("token", [None, "", "wrong", "ä"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/admin/grant"), ("POST", "/admin/ban"), ("POST", "/admin/freeze"), ("GET", "/admin/audit")],
)
def test_without_the_secret_nothing_opens(
    platform: ServerProcess, token: str | None, method: str, path: str
) -> None:
    headers = {} if token is None else {"X-Admin-Token": token.encode()}
    answer = httpx.request(method, platform.base_url + path, headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "X-Admin-Token"


def test_an_empty_secret_closes_them(start_server: StartServer) -> None:
    server = start_server({"ADMIN_TOKEN": ""})
    answer = httpx.get(f"{server.base_url}/admin/audit", headers={"X-Admin-Token": ""}, trust_env=False)
    assert answer.status_code == 401


def test_a_grant_reaches_the_ledger(alice: httpx.Client, operator: httpx.Client) -> None:
    answer = operator.post(
        "/admin/grant", json={"hub_username": name_of(alice), "delta": 2.505, "reason": "for a talk"}
    )
    assert answer.status_code == 200
    assert answer.json()["new_balance"] == 12.505
    entry = alice.get("/v1/me/transactions").json()[0]
    assert (entry["delta"], entry["reason"], entry["note"]) == (2.505, "admin_grant", "for a talk")
    deed = operator.get("/admin/audit").json()[0]
    assert (deed["action"], deed["target"], deed["details"]["note"]) == (
        "grant",
        name_of(alice),
        "for a talk",
    )


def test_a_deduction_below_zero_is_409(alice: httpx.Client, operator: httpx.Client) -> None:
    answer = operator.post(
        "/admin/grant", json={"hub_username": name_of(alice), "delta": -10.001, "reason": "x"}
    )
    assert answer.status_code == 409
    assert alice.get("/v1/me").json()["credits"] == 10


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"hub_username": "alice", "delta": NaN, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": Infinity, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": "much", "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": "1", "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": "1_0", "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": " 1 ", "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": true, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": null, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": [1], "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": 0, "reason": "x"}', None),
        ('{"hub_username": "alice", "delta": 0.0001, "reason": "x"}', None),
        ('{"hub_username": "alice", "delta": 1e30, "reason": "x"}', None),
        ('{"hub_username": "alice\\u0000", "delta": 1, "reason": "x"}', "hub_username"),
        ('{"hub_username": "", "delta": 1, "reason": "x"}', "hub_username"),
        ('{"hub_username": 7, "delta": 1, "reason": "x"}', "hub_username"),
        ('{"hub_username": "alice", "delta": 1, "reason": ""}', "reason"),
        ('{"hub_username": "alice", "delta": 1, "reason": "x", "more": 1}', "more"),
        ('{"hub_username": "alice"}', "delta"),
        ("[]", None),
        ("null", None),
    ],
)
def test_a_bad_grant_is_422_and_changes_nothing(
    alice: httpx.Client, operator: httpx.Client, content: str, field: str | None
) -> None:
    content = content.replace("alice", name_of(alice))
    answer = operator.post("/admin/grant", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    if field:
        assert field in {problem["field"] for problem in answer.json()["errors"]}
    assert alice.get("/v1/me").json()["credits"] == 10
    assert not [deed for deed in operator.get("/admin/audit").json() if deed["target"] == name_of(alice)]


def test_a_note_with_a_null_character_is_no_500(alice: httpx.Client, operator: httpx.Client) -> None:
    answer = operator.post(
        "/admin/grant", json={"hub_username": name_of(alice), "delta": 1, "reason": "a\0b"}
    )
    assert answer.status_code == 422


def test_what_is_not_json_is_a_problem_document(operator: httpx.Client) -> None:
    for content, kind in (
        (b"{", "application/json"),
        (b"x" * 100, "text/plain"),
        (b"\xff", "application/json"),
    ):
        answer = operator.post("/admin/grant", content=content, headers={"Content-Type": kind})
        assert answer.status_code in {400, 415, 422}
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_kill_switch_is_shown_and_audited(operator: httpx.Client) -> None:
    assert operator.post("/admin/freeze?frozen=true").json() == {"submissions_frozen": True}
    assert operator.get("/readyz").json()["submissions_frozen"] is True
    assert operator.post("/admin/freeze?frozen=false").json() == {"submissions_frozen": False}
    assert operator.get("/readyz").json()["submissions_frozen"] is False
    assert [deed["action"] for deed in operator.get("/admin/audit?limit=2").json()] == ["unfreeze", "freeze"]


@pytest.mark.parametrize("query", ["", "?frozen=", "?frozen=maybe", "?frozen=2"])
def test_a_freeze_that_says_nothing_is_422(operator: httpx.Client, query: str) -> None:
    assert operator.post(f"/admin/freeze{query}").status_code == 422


@pytest.mark.parametrize(
    "body", [{"hub_username": "nobody", "banned": False}, {"hub_username": "alice", "banned": "no"}]
)
def test_a_ban_that_cannot_be_is_refused(operator: httpx.Client, body: dict[str, Any]) -> None:
    assert operator.post("/admin/ban", json=body).status_code in {404, 422}


def test_a_name_can_be_banned_before_its_first_call(platform: ServerProcess, operator: httpx.Client) -> None:
    operator.post("/admin/ban", json={"hub_username": "mallory", "banned": True})
    headers = {"Authorization": f"Bearer {platform.add_user('mallory')}"}
    assert httpx.get(f"{platform.base_url}/v1/me", headers=headers, trust_env=False).status_code == 403
    assert operator.get("/admin/accounts/mallory").json()["credits"] == 0
    assert operator.get("/admin/accounts/nobody").status_code == 404


def test_a_ban_holds_for_every_spelling_of_the_name(platform: ServerProcess, operator: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {platform.add_user('trudy')}"}
    operator.post("/admin/ban", json={"hub_username": "Trudy", "banned": True})
    assert httpx.get(f"{platform.base_url}/v1/me", headers=headers, trust_env=False).status_code == 403
    assert operator.get("/admin/accounts/TRUDY").json()["banned"] is True


@pytest.mark.parametrize("name", ["a" * 97, "a" * 5000, "%ed%a0%80", "%ff", "a%0ab", "-"])
def test_a_name_that_no_account_may_have_is_404(operator: httpx.Client, name: str) -> None:
    assert operator.get(f"/admin/accounts/{name}").status_code == 404
