"""Lists of submissions for operators and accounts, lists of tasks, and refunds."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import numpy as np
import pyarrow as pa
import pytest

from collidium.testing.server import ServerProcess

from .conftest import OpenPlatform, ok, operating, pages_of, parquet, signed_in, submission_ids


@pytest.fixture(scope="module")
def server(open_timed: OpenPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that also has the task timed, whose first metric is self-reported."""
    with open_timed(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: ServerProcess) -> Iterator[httpx.Client]:
    with operating(server) as client:
        yield client


@pytest.fixture(scope="module")
def alice(server: ServerProcess) -> Iterator[httpx.Client]:
    with signed_in(server, "alice") as client:
        yield client


@pytest.fixture(scope="module")
def submitted(server: ServerProcess, alice: httpx.Client, oracle: pa.Table) -> list[str]:
    """Four submissions, oldest first: alice's and bob's tracking, then their times."""
    timed = oracle.append_column("seconds", pa.array(np.full(oracle.num_rows, 0.5)))
    sent = []
    with signed_in(server, "bob") as bob:
        for task, table in (("tracking", oracle), ("timed", timed)):
            for client in (alice, bob):
                receipt = ok(client.post(f"/v1/benchmark/{task}/submit", content=parquet(table)))
                sent.append(receipt["submission_id"])
    return sent


def test_submissions_are_listed_and_picked(operator: httpx.Client, submitted: list[str]) -> None:
    one, two, three, four = submitted
    assert submission_ids(operator.get("/admin/submissions")) == [four, three, two, one]
    assert submission_ids(operator.get("/admin/submissions?task=tracking")) == [two, one]
    assert submission_ids(operator.get("/admin/submissions?user=ALICE")) == [three, one]
    assert submission_ids(operator.get("/admin/submissions?user=alice&task=timed")) == [three]
    assert submission_ids(operator.get("/admin/submissions?unverified=true")) == [four, three]
    assert submission_ids(operator.get("/admin/submissions?unverified=true&task=tracking")) == []
    assert operator.post(f"/admin/submissions/{three}/verify").status_code == 200
    assert submission_ids(operator.get("/admin/submissions?unverified=true")) == [four]


def test_an_account_sees_its_own_submissions(alice: httpx.Client, submitted: list[str]) -> None:
    tracking, timed, mine = submitted[0], submitted[2], "/v1/me/submissions"
    assert submission_ids(alice.get(mine)) == [timed, tracking]
    assert submission_ids(alice.get(f"{mine}?task=timed")) == [timed]
    first = alice.get(f"{mine}?limit=1&challenge=timed")
    assert submission_ids(first) == [timed]
    assert "next" not in first.links
    for query in ("task=nothing", "cursor=x", "cursor=" + "0" * 32, "cursor=" + "0" * 600):
        assert alice.get(f"{mine}?{query}").status_code in {404, 422}


def test_pages_make_up_the_list(operator: httpx.Client, submitted: list[str]) -> None:
    pages = pages_of(operator, "/admin/submissions?limit=1")
    assert [[submission["submission_id"] for submission in page] for page in pages] == [
        [submission] for submission in submitted[::-1]
    ]


def test_tasks_show_why_they_take_nothing(operator: httpx.Client, server: ServerProcess) -> None:
    tasks = {task["name"]: task for task in operator.get("/admin/tasks").json()}
    assert tasks["tracking"]["reason"] is None
    assert tasks["tracking"]["truth_version"]
    assert (tasks["timed"]["distribution"], tasks["timed"]["phase"]) == ("timed-task", None)
    assert server.run("task", "remove", "timed").returncode == 0
    try:
        timed = {task["name"]: task for task in operator.get("/admin/tasks").json()}["timed"]
        assert (timed["installed"], timed["listed"]) == (True, False)
        assert "collidium task add timed" in timed["reason"]
    finally:
        assert server.run("task", "add", "timed").returncode == 0


# -- refunds ------------------------------------------------------------------------------------------

WEEK = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00+01:00"}


def test_refunds_are_previewed_and_applied(operator: httpx.Client) -> None:
    seen = operator.post("/admin/refunds", json=WEEK).json()
    assert (seen["applied"], seen["total"], seen["requests"]) == (False, 0, [])
    applied = operator.post("/admin/refunds", json=WEEK | {"apply": True, "digest": seen["digest"]})
    assert applied.json() == seen | {"applied": True}
    other = operator.post("/admin/refunds", json=WEEK | {"apply": True, "digest": "0" * 64})
    assert other.status_code == 409
    assert "0 requests" in other.json()["detail"]


@pytest.mark.parametrize(
    "changed",
    [
        {"from": "2026-11-09T00:00:00Z"},
        {"to": "2026-12-09T00:00:00Z"},
        {"from": "2026-11-01T00:00:00"},
        {"from": "2026-11-01"},
        {"from": 1793491200},
        {"from": "1793491200"},
        {"from": "2026-02-30T00:00:00Z"},
        {"from": "0001-01-01T00:00:00+14:00"},
        {"to": "9999-12-31T23:59:59-14:00"},
        {"apply": True},
        {"apply": "true"},
        {"apply": 1},
    ],
)
def test_an_impossible_refund_is_rejected(operator: httpx.Client, changed: dict[str, object]) -> None:
    answer = operator.post("/admin/refunds", json=WEEK | changed)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"]
