"""Operators' calls about accounts: lists, ledgers and grants."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from collidium.testing.databases import Databases
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import calling, ok, operating, pages_of, signed_in

NAMES = ("Bea_1", "alice", "albert", "carl.x")


@pytest.fixture(scope="module")
def operator(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """An operator of a server with four accounts, of which albert is banned and carl.x was given 5.25."""
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("server"), url) as server:
        for name in NAMES:
            with signed_in(server, name) as client:
                client.get("/v1/me")
        with operating(server) as operator:
            operator.post("/admin/ban", json={"hub_username": "albert", "banned": True, "note": "storm"})
            gift = {"hub_username": "carl.x", "delta": 5.25, "reason": "a talk"}
            operator.post("/admin/grant", json=gift)
            yield operator


def test_an_empty_secret_closes_them(start_server: StartServer) -> None:
    with calling(start_server({"ADMIN_TOKEN": ""}), **{"X-Admin-Token": ""}) as client:
        assert client.get("/admin/audit").status_code == 401


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["carl.x", "albert", "alice", "Bea_1"]),
        ("sort=name", ["albert", "alice", "Bea_1", "carl.x"]),
        ("sort=credits", ["carl.x", "albert", "alice", "Bea_1"]),
        ("search=AL", ["albert", "alice"]),
        ("search=bea_", ["Bea_1"]),
        ("search=l_c", []),
        ("search=%25", []),
        ("search=%5C", []),
        ("search=é", []),
        ("search=+alice+", ["alice"]),
        ("banned=true", ["albert"]),
        ("banned=false&sort=name", ["alice", "Bea_1", "carl.x"]),
        ("banned=true&search=alice", []),
    ],
)
def test_accounts_are_found_and_sorted(operator: httpx.Client, query: str, found: list[str]) -> None:
    accounts = ok(operator.get(f"/admin/accounts?{query}"))
    assert [account["hub_username"] for account in accounts] == found


@pytest.mark.parametrize("sort", ["newest", "name", "credits"])
def test_pages_make_up_the_list(operator: httpx.Client, sort: str) -> None:
    whole = ok(operator.get(f"/admin/accounts?sort={sort}"))
    assert pages_of(operator, f"/admin/accounts?sort={sort}&limit=1") == [[account] for account in whole]
    assert len(whole) == len(NAMES)


def test_an_accounts_ledger_is_shown_in_pages(operator: httpx.Client) -> None:
    [grant], [signup] = pages_of(operator, "/admin/accounts/CARL.X/transactions?limit=1")
    assert (grant["delta"], grant["note"], grant["balance_after"]) == (5.25, "a talk", 15.25)
    assert signup["reason"] == "signup_grant"
    assert operator.get("/admin/accounts/unknown/transactions").status_code == 404


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"hub_username": "alice", "delta": NaN, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": "1", "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": true, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": 0, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": 0.0001, "reason": "x"}', "delta"),
        ('{"hub_username": "alice", "delta": 1e30, "reason": "x"}', "delta"),
    ],
)
def test_a_bad_grant_is_422_and_changes_nothing(operator: httpx.Client, content: str, field: str) -> None:
    answer = operator.post("/admin/grant", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert field in {problem["field"] for problem in answer.json()["errors"]}
    assert operator.get("/admin/accounts/alice").json()["credits"] == 10
    assert "alice" not in operator.get("/admin/audit").text


@pytest.mark.parametrize("name", ["a" * 97, "a" * 5000, "%ed%a0%80", "%ff", "a%0ab", "-"])
def test_an_invalid_account_name_is_404(operator: httpx.Client, name: str) -> None:
    assert operator.get(f"/admin/accounts/{name}").status_code == 404
