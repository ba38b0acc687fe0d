"""What an account has submitted, as it lists it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pyarrow as pa
import pytest

from collidium.testing.server import ServerProcess

from .conftest import parquet, signed_in, submission_ids

URL = "/v1/me/submissions"


@pytest.fixture(scope="module")
def accounts(platform: ServerProcess) -> Iterator[list[httpx.Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(signed_in(platform, name)) for name in ("mine", "yours")]


@pytest.fixture(scope="module")
def submitted(accounts: list[httpx.Client], oracle: pa.Table) -> list[list[str]]:
    """Two submissions of one account and one of the other, oldest first."""
    sent: list[list[str]] = [[], []]
    for who, rows in ((0, oracle.num_rows), (1, oracle.num_rows), (0, oracle.num_rows - 1)):
        answer = accounts[who].post("/v1/benchmark/tracking/submit", content=parquet(oracle.slice(0, rows)))
        assert answer.status_code == 200, answer.text
        sent[who].append(answer.json()["submission_id"])
    return sent


def test_an_account_sees_its_own_newest_first(
    accounts: list[httpx.Client], submitted: list[list[str]]
) -> None:
    for account, own in zip(accounts, submitted, strict=True):
        assert submission_ids(account.get(URL)) == own[::-1]
        assert submission_ids(account.get(f"{URL}?task=tracking")) == own[::-1]
        assert submission_ids(account.get(f"{URL}?task=jets")) == []
    newest = accounts[0].get(URL).json()[0]
    shown = accounts[0].get(f"/v1/submissions/{submitted[0][-1]}").json()
    assert (newest["scores"], newest["sha256"]) == (shown["scores"], shown["sha256"])


def test_pages_make_up_the_list(accounts: list[httpx.Client], submitted: list[list[str]]) -> None:
    pages = [accounts[0].get(f"{URL}?limit=1&task=tracking")]
    while link := pages[-1].links.get("next"):
        assert "task=tracking" in link["url"]
        pages.append(accounts[0].get(link["url"]))
    assert [submission for page in pages for submission in submission_ids(page)] == submitted[0][::-1]


@pytest.mark.parametrize(
    "query", ["task=nothing", "task=" + "a" * 65, "task=%00", "limit=0", "cursor=x", "cursor=" + "0" * 32]
)
def test_what_cannot_be_asked_is_refused(accounts: list[httpx.Client], query: str) -> None:
    answer = accounts[0].get(f"{URL}?{query}")
    assert answer.status_code in {404, 422}, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
