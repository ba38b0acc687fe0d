"""``/v1/me`` and the ledger of an account."""

from __future__ import annotations

import httpx
import pytest

from collidium.testing.server import ServerProcess

from .conftest import name_of, ok, pages_of


def test_the_first_call_signs_up_with_the_grant(alice: httpx.Client) -> None:
    me = ok(alice.get("/v1/me"))
    assert set(me) == {"hub_username", "credits", "banned", "created_at", "last_seen_at"}
    assert (me["credits"], me["banned"]) == (10, False)
    assert me["created_at"].endswith("Z")
    (entry,) = alice.get("/v1/me/transactions").json()
    assert (entry["delta"], entry["reason"], entry["balance_after"]) == (10, "signup_grant", 10)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic YTpi", "Bearer nonsense", "Bearer a b"])
def test_without_a_valid_token_the_answer_is_401_and_says_how(
    platform: ServerProcess, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = httpx.get(f"{platform.base_url}/v1/me", headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]


def test_the_ledger_comes_in_pages(alice: httpx.Client, operator: httpx.Client) -> None:
    for n in range(1, 5):
        operator.post("/admin/grant", json={"hub_username": name_of(alice), "delta": n, "reason": "test"})
    pages = pages_of(alice, "/v1/me/transactions?limit=2")
    assert [[entry["delta"] for entry in page] for page in pages] == [[4, 3], [2, 1], [10]]


@pytest.mark.parametrize(
    "query",
    ["cursor=-1", "cursor=1e3", "cursor=%D9%A3", "cursor=" + "9" * 30],
)
def test_a_bad_page_is_422_and_names_the_field(alice: httpx.Client, query: str) -> None:
    answer = alice.get(f"/v1/me/transactions?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == query.split("=")[0]
