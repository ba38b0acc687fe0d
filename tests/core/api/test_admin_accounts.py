"""Accounts and ledgers as operators list them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from collidium.testing.databases import Databases
from collidium.testing.server import ServerProcess

from .conftest import operating, signed_in

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


def names(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [account["hub_username"] for account in answer.json()]


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
    assert names(operator.get(f"/admin/accounts?{query}")) == found


@pytest.mark.parametrize("sort", ["newest", "name", "credits"])
def test_pages_make_up_the_list(operator: httpx.Client, sort: str) -> None:
    whole = names(operator.get(f"/admin/accounts?sort={sort}"))
    pages = [operator.get(f"/admin/accounts?sort={sort}&limit=1")]
    while link := pages[-1].links.get("next"):
        pages.append(operator.get(link["url"]))
    assert [name for page in pages for name in names(page)] == whole
    assert len(pages) == len(NAMES)


def test_an_accounts_ledger_is_shown_in_pages(operator: httpx.Client) -> None:
    first = operator.get("/admin/accounts/CARL.X/transactions?limit=1")
    (grant,) = first.json()
    assert (grant["delta"], grant["note"], grant["balance_after"]) == (5.25, "a talk", 15.25)
    (signup,) = operator.get(first.links["next"]["url"]).json()
    assert signup["reason"] == "signup_grant"
    assert operator.get("/admin/accounts/unknown/transactions").status_code == 404
