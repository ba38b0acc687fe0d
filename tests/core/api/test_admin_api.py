"""The operators' endpoints."""

from __future__ import annotations

import httpx
import pytest

from collidium.testing.plugin import StartServer

from .conftest import name_of


def test_an_empty_secret_closes_them(start_server: StartServer) -> None:
    server = start_server({"ADMIN_TOKEN": ""})
    answer = httpx.get(f"{server.base_url}/admin/audit", headers={"X-Admin-Token": ""}, trust_env=False)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"hub_username": "alice", "delta": NaN, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": "1", "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": true, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": null, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": 0, "reason": "x"}', None),
        ('{"hub_username": "alice", "delta": 1e30, "reason": "x"}', None),
        ('{"hub_username": "alice\\u0000", "delta": 1, "reason": "x"}', "hub_username"),
        ('{"hub_username": 7, "delta": 1, "reason": "x"}', "hub_username"),
        ('{"hub_username": "alice", "delta": 1, "reason": ""}', "reason"),
        ('{"hub_username": "alice", "delta": 1, "reason": "a\\u0000b"}', "reason"),
        ('{"hub_username": "alice", "delta": 1, "reason": "x", "more": 1}', "more"),
        ('{"hub_username": "alice"}', "delta"),
        ("[]", None),
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
    assert not [
        logged for logged in operator.get("/admin/audit").json() if logged["target"] == name_of(alice)
    ]


@pytest.mark.parametrize("query", ["", "?frozen=", "?frozen=maybe", "?frozen=2"])
def test_a_freeze_that_says_nothing_is_422(operator: httpx.Client, query: str) -> None:
    assert operator.post(f"/admin/freeze{query}").status_code == 422


@pytest.mark.parametrize("name", ["a" * 97, "a" * 5000, "%ed%a0%80", "%ff", "a%0ab", "-"])
def test_a_name_that_no_account_may_have_is_404(operator: httpx.Client, name: str) -> None:
    assert operator.get(f"/admin/accounts/{name}").status_code == 404
